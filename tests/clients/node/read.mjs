// Answers each line of JSON, {client, url, paths}, with what that client reads at those paths below the URL.
import { createInterface } from "node:readline";
import { read } from "./clients.mjs";

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await read(JSON.parse(line))));
}
