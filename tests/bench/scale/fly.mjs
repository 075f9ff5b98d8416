// Flies with Neuroglancer: node fly.mjs CHROMIUM URL MILLISECONDS. Reads states, a line of JSON each, and shows each in one page
// for this time, as a person does who scrolls and drags.
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [, , executablePath, url, milliseconds] = process.argv;
const browser = await chromium.launch({
  executablePath,
  args: ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"],
});
const page = await browser.newPage({ viewport: { width: 900, height: 700 } });
let isOpen = false;
for await (const state of createInterface({ input: process.stdin })) {
  const fragment = `#!${encodeURIComponent(state)}`;
  if (isOpen) {
    await page.evaluate((to) => location.replace(to), fragment);
  } else {
    await page.goto(url + fragment);
    isOpen = true;
  }
  await page.waitForTimeout(Number(milliseconds));
}
await browser.close();
