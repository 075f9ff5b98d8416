// Visits pages of zarrd in a headless Chromium: node view.mjs CHROMIUM. It answers each line of JSON with what the page did.
//
// A question is {url, …}: `steps` is a list of [action, …] (`click`, `key`, `fill`, `wait`, `evaluate`), `scripts: false` switches
// scripts off, `plain` is a page of others, `dark`, `width` and `height` are those of the window, `axe` checks accessibility, `png` is a file
// for a screenshot.
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [, , executablePath] = process.argv;
const MILLISECONDS = 30000;
// Longer than a page takes between what it has read and what it asks for next.
const LOADED_QUIET_MILLISECONDS = 200;
// Longer than a page waits after a change before it asks for something or writes its URL.
const CHANGED_QUIET_MILLISECONDS = 450;
// Longer than a page takes to show what has arrived.
const ANSWERED_QUIET_MILLISECONDS = 50;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const actions = {
  click: (page, selector) => page.click(selector),
  goto: async (page, url) => void (await page.goto(url, { timeout: MILLISECONDS })),
  key: (page, key) => page.keyboard.press(key),
  fill: async (page, selector, text) => {
    await page.fill(selector, text);
    await page.press(selector, "Enter");
  },
  type: (page, text) => page.keyboard.type(text),
  drag: async (page, selector, count) => {
    for (let at = 0; at < count; at += 1) {
      await page.locator(selector).evaluate((input, value) => {
        input.value = String(value % (Number(input.max) + 1));
        input.dispatchEvent(new Event("input", { bubbles: true }));
      }, at);
    }
  },
  wait: (page, selector) => page.waitForSelector(selector, { timeout: MILLISECONDS, state: "attached" }),
  // Each time by the debugger: the policy of pages forbids the evaluation that `waitForFunction` repeats.
  until: async (page, script) => {
    const end = Date.now() + MILLISECONDS;
    while (!(await page.evaluate(`Boolean(${script})`))) {
      if (Date.now() > end) throw new Error(`not within ${MILLISECONDS} ms: ${script}`);
      await page.waitForTimeout(50);
    }
  },
  // The bytes a second that the network takes in from now on.
  throttle: async (page, downloadThroughput) => {
    const session = await page.context().newCDPSession(page);
    await session.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput, uploadThroughput: -1 });
  },
  // And until what was asked for meanwhile is there, however slow the machine is.
  pause: async (page, milliseconds) => {
    await page.waitForTimeout(milliseconds);
    await page.quiet(ANSWERED_QUIET_MILLISECONDS);
  },
  evaluate: (page, script) => page.evaluate(script),
};

// Waits until a page has asked for nothing for a while. The state `networkidle` of the library is half a second.
function quietOf(page) {
  const inFlight = new Set();
  let changed = Date.now();
  const change = (does) => (request) => {
    inFlight[does](request);
    changed = Date.now();
  };
  page.on("request", change("add"));
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, change("delete"));
  return async (milliseconds) => {
    const end = Date.now() + MILLISECONDS;
    while (inFlight.size > 0 || Date.now() - changed < milliseconds) {
      if (Date.now() > end) throw new Error(`not quiet within ${MILLISECONDS} ms: ${[...inFlight].map((request) => request.url())}`);
      await page.waitForTimeout(20);
    }
  };
}

async function visit(question) {
  const { url, steps = [], scripts = true, plain = false, dark = false, width = 1280, height = 900, png } = question;
  const context = await browser.newContext({
    viewport: { width, height }, colorScheme: dark ? "dark" : "light", javaScriptEnabled: scripts, ignoreHTTPSErrors: true,
  });
  const page = await context.newPage();
  const origin = new URL(url).origin;
  const result = { said: [], others: [], requests: [], values: [] };
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) result.said.push(`${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => result.said.push(String(error.stack)));
  page.quiet = quietOf(page);
  page.on("request", (request) => {
    const address = request.url();
    if (address.startsWith("blob:")) return;
    (address.startsWith(origin) ? result.requests : result.others).push(address.slice(address.startsWith(origin) ? origin.length : 0));
  });
  try {
    const response = await page.goto(url, { timeout: MILLISECONDS, waitUntil: "load" });
    result.status = response.status();
    result.headers = response.headers();
    if (scripts && !plain) await page.waitForSelector("html[data-ready]", { timeout: MILLISECONDS, state: "attached" });
    await page.quiet(LOADED_QUIET_MILLISECONDS);
    for (const [action, ...values] of steps) result.values.push(await actions[action](page, ...values));
    if (steps.length > 0) await page.quiet(CHANGED_QUIET_MILLISECONDS);
    result.url = page.url().slice(origin.length);
    result.title = await page.title();
    result.text = await page.innerText("body");
    if (question.axe) {
      // The policy of pages lets no script in; this one comes by the debugger.
      await page.evaluate(axe);
      const found = await page.evaluate(() => globalThis.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }));
      result.violations = found.violations.map(({ id, help, nodes }) => ({ id, help, nodes: nodes.map((node) => node.html).slice(0, 5) }));
    }
    if (png) await page.screenshot({ path: png, fullPage: true });
  } catch (error) {
    result.error = String(error);
  }
  await context.close();
  return result;
}

const browser = await chromium.launch({
  executablePath,
  timeout: MILLISECONDS,
  args: ["--force-color-profile=srgb", "--no-sandbox"],
});
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await visit(JSON.parse(line))));
}
await browser.close();
