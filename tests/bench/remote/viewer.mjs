// What a viewer reads, as browsers do it: the keys of a trace by connections that stay open.
//
//     node viewer.mjs CONNECTIONS FOLDER KEY...
//
// Standard input has a base URL a line. For each, all keys are read, each body is compared with the file of its key in the
// folder, and a line is printed: `done`. Anything else ends the program with an error.
import { readFileSync } from "node:fs";
import http from "node:http";
import readline from "node:readline";

const [connections, folder, ...keys] = process.argv.slice(2);
const expected = new Map(keys.map((key) => [key, readFileSync(`${folder}/${key}`)]));

/** Reads a key, and fails unless the whole body is the right one. */
function read(url, agent, bytes) {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { agent }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("error", reject);
      response.on("end", () => {
        const isRight = response.statusCode === 200 && Buffer.concat(parts).equals(bytes);
        return isRight ? resolve() : reject(new Error(`${url}: status ${response.statusCode}, or other bytes`));
      });
    });
    request.on("error", reject);
  });
}

/** Reads all keys, in the order of the trace, as many at a time as there are connections. */
async function replay(base) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: Number(connections) });
  const left = expected.entries();
  const worker = async () => {
    for (const [key, bytes] of left) {
      await read(`${base}/${key}`, agent, bytes);
    }
  };
  await Promise.all(Array.from({ length: Number(connections) }, worker));
  agent.destroy();
}

console.log("ready");
for await (const base of readline.createInterface({ input: process.stdin })) {
  await replay(base);
  console.log("done");
}
