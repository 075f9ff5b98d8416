// What a script may see of another origin, and what the browser's cache makes of it. The fragment of the address is the
// URL of an empty prefix that may be written to.
const base = location.hash.slice(1);
const FIELDS = ["Accept-Ranges", "Content-Length", "Content-Range", "Content-Type", "ETag", "Last-Modified"];

async function ask(key, init) {
  const answer = await fetch(base + key, init);
  const body = await answer.text();
  const fields = FIELDS.map((field) => [field, answer.headers.get(field)]);
  return { status: answer.status, url: answer.url, body, fields: Object.fromEntries(fields) };
}

// A browser drops its cached response for a URL that it writes to. It does not know that this URL is the same resource.
const putUnknown = (key, body) => put(`/${key}`, body);
const put = (key, body) => ask(key, { method: "PUT", body });
const range = (bytes, fields) => ({ headers: { Range: `bytes=${bytes}`, ...fields } });

async function facts() {
  const old = "0123456789".repeat(20);
  const fresh = "abcdefghij".repeat(20);
  const created = await put("value", old);
  const whole = await ask("value");
  const etag = whole.fields.ETag;
  return {
    created,
    whole,
    head: await ask("value", { method: "HEAD" }),
    missing: await ask("missing"),
    "missing range": await ask("missing", range("0-3")),
    "missing suffix": await ask("missing", range("-3")),
    range: await ask("value", { cache: "no-store", ...range("3-6") }),
    suffix: await ask("value", { cache: "no-store", ...range("-3") }),
    several: await ask("value", { cache: "no-store", ...range("0-1,4-5") }),
    beyond: await ask("value", { cache: "no-store", ...range("900-") }),
    "the same": await ask("value", { cache: "no-store", ...range("3-6", { "If-Range": etag }) }),
    another: await ask("value", { cache: "no-store", ...range("3-6", { "If-Range": '"other"' }) }),
    unchanged: await ask("value", { cache: "no-store", headers: { "If-None-Match": etag } }),
    changed: await ask("value", { cache: "no-store", headers: { "If-Match": '"other"' } }),
    redirected: await ask("folder/value", { method: "PUT", body: old }).then(() => ask("folder")),
    "listed in a folder": await ask("folder/"),
    erased: await ask("folder/value", { method: "DELETE" }),
    // Of these, the cache has a part; then it has an old one.
    part: await put("parts", old).then(() => ask("parts", range("0-10"))),
    stitched: await ask("parts", range("0-100")),
    "stitched again": await putUnknown("parts", fresh).then(() => ask("parts", range("0-150"))),
    // Of these, it has all; then it has something old.
    first: await put("again", old).then(() => ask("again")),
    second: await ask("again"),
    third: await putUnknown("again", fresh).then(() => ask("again")),
  };
}

window.finished = facts();
