// Opens pages in a headless Chromium: node browse.mjs CHROMIUM. It answers each line of JSON, {url, png}, with what that
// page finishes with, and the pixels of a screenshot if a file for one is named.
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [, , executablePath] = process.argv;
const MILLISECONDS = 30000;

// Pixels, as the browser itself decodes them. This runs in a page.
async function decode(base64) {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${base64}`)).blob());
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const { data, width, height } = context.getImageData(0, 0, image.width, image.height);
  const url = await new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(new Blob([data]));
  });
  return { dtype: "uint8", shape: [height, width, 4], stride: null, values: url.slice(url.indexOf(",") + 1) };
}

async function open({ url, png }) {
  // Each has a cache of its own.
  const context = await browser.newContext({ viewport: { width: 900, height: 700 } });
  const page = await context.newPage();
  const said = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(String(error.stack)));
  await page.goto(url, { timeout: MILLISECONDS });
  const result = { said };
  try {
    await page.waitForFunction(() => window.finished, null, { timeout: MILLISECONDS });
    result.finished = await page.evaluate(() => window.finished);
  } catch (error) {
    result.error = String(error);
  }
  if (png) {
    const screenshot = await page.screenshot({ path: png });
    const blank = await context.newPage();
    result.screenshot = await blank.evaluate(decode, screenshot.toString("base64"));
  }
  await context.close();
  return result;
}

const browser = await chromium.launch({
  executablePath,
  timeout: MILLISECONDS,
  // WebGL without a graphics card; colours as they are; and no sandbox, which root cannot have.
  args: ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--force-color-profile=srgb", "--no-sandbox"],
});
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await open(JSON.parse(line))));
}
await browser.close();
