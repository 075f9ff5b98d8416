// Finishes with what a client reads at some paths below a URL. The question is the fragment of the address.
import { read } from "../clients.mjs";

window.finished = read(JSON.parse(decodeURIComponent(location.hash.slice(1))));
