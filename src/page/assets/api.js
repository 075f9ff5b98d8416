// Requests to the server that the page came from.

/** An error response. */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {Record<string, any>} document
   */
  constructor(status, document) {
    super(document.detail || document.title || `The server responded with ${status}.`);
    this.status = status;
    this.document = document;
  }
}

/** The parameters of a signed URL. The server removes them from the words of every URL that has a signature. */
const OF_SIGNATURES = ["expires", "key", "signature", "below"];

/** The parts of the query of the page's URL, as they are written: the signature, if it has one, and the words. */
function splitQuery() {
  const pairs = location.search.slice(1).split("&").filter(Boolean);
  const isSigned = pairs.some((pair) => pair.startsWith("signature="));
  const isOfSignature = (/** @type {string} */ pair) => {
    const [name, value = ""] = pair.split("=");
    // The prefix of a signature is empty or ends in a slash; that of a picture is a colour.
    return isSigned && OF_SIGNATURES.includes(name) && (name !== "below" || /^$|(\/|%2f)$/i.test(value));
  };
  return { signature: pairs.filter(isOfSignature).join("&"), words: pairs.filter((pair) => !isOfSignature(pair)).join("&") };
}

/** The words of the page's URL, without a signature. @returns {URLSearchParams} */
export const pageWords = () => new URLSearchParams(splitQuery().words);

/** The path of the page, with the signature of its URL, if it has one. @returns {string} */
export function pagePath() {
  const { signature } = splitQuery();
  return signature ? `${location.pathname}?${signature}` : location.pathname;
}

/**
 * A path with names below it, before the query that it may have.
 * @param {string} path
 * @param {string} names
 * @returns {string}
 */
export function pathBelow(path, names) {
  const [start, query] = path.split("?", 2);
  return `${start.replace(/\/$/, "")}/${names}${query ? `?${query}` : ""}`;
}

/**
 * A path with a query; words without a value are left out. A query that it has, which is the signature of a signed URL, stays.
 * @param {string} path
 * @param {Record<string, string | number | null | undefined>} words
 * @returns {string}
 */
export function link(path, words) {
  const pairs = Object.entries(words)
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => `${encodeURIComponent(name)}=${readable(encodeURIComponent(String(value)))}`);
  return pairs.length ? `${path}${path.includes("?") ? "&" : "?"}${pairs.join("&")}` : path;
}

/**
 * @param {string} text An escaped text.
 * @returns {string} The same with the signs of slices as they are.
 */
const readable = (text) => text.replaceAll("%2C", ",").replaceAll("%3A", ":");

/**
 * @param {string} url
 * @param {string} accept
 * @param {AbortSignal} [signal]
 * @returns {Promise<Response>}
 */
async function get(url, accept, signal) {
  let response;
  try {
    response = await fetch(url, { headers: { Accept: accept }, signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, { detail: "The server does not respond. It is asked again with the next change." });
  }
  if (response.ok) return response;
  const document = await response.json().catch(() => ({}));
  throw new Problem(response.status, document);
}

/**
 * A JSON document.
 * @param {string} url
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function getJson(url, signal) {
  return (await get(url, "application/json", signal)).json();
}

/**
 * Elements as bytes, with what the headers say of them, the milliseconds until they were there, and those of their transfer alone.
 * @param {string} url
 * @param {AbortSignal} [signal]
 */
export async function getElements(url, signal) {
  const began = performance.now();
  const response = await get(url, "application/octet-stream", signal);
  const answered = performance.now();
  const buffer = await response.arrayBuffer();
  const ended = performance.now();
  const shape = JSON.parse(response.headers.get("Array-Shape") || "[]");
  return {
    buffer,
    shape: /** @type {number[]} */ (shape),
    type: response.headers.get("Array-Data-Type") || "",
    timing: response.headers.get("Server-Timing") || "",
    milliseconds: ended - began,
    transfer: ended - answered,
  };
}

/**
 * Runs one task at a time. While one runs, only the last of those that come is kept.
 */
export class Latest {
  constructor() {
    /** @type {(() => Promise<void>) | null} */
    this.waiting = null;
    this.isRunning = false;
  }

  /** @param {() => Promise<void>} task */
  async run(task) {
    this.waiting = task;
    if (this.isRunning) return;
    this.isRunning = true;
    try {
      while (this.waiting) {
        const next = this.waiting;
        this.waiting = null;
        await next();
      }
    } finally {
      this.isRunning = false;
    }
  }
}
