// Tries operations of the documentation in a headless Chromium: node docs.mjs CHROMIUM. It answers each line of JSON,
// {url, operation, parameters, png}, with the tags and methods on the page, the URL that was asked, the status, and the widths of
// the pictures of the response (0 if one is not shown).
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [, , executablePath] = process.argv;
const timeout = 30000;

async function tried({ url, operation, parameters, png }) {
  const page = await browser.newPage({ viewport: { width: 1000, height: 1400 } });
  page.setDefaultTimeout(timeout);
  try {
    await page.goto(url, { timeout });
    const block = page.locator(`#operations-${operation}`);
    await block.locator(".opblock-summary-control").click();
    await block.locator(".try-out__btn").click();
    for (const [name, value] of Object.entries(parameters)) {
      const row = block.locator(`tr[data-param-name="${name}"]`);
      await row.locator("input, textarea").first().fill(value);
    }
    await block.locator(".execute").click();
    const status = block.locator(".live-responses-table .response-col_status").last();
    await status.waitFor();
    const pictures = await block.locator(".live-responses-table img").evaluateAll((images) =>
      Promise.all(images.map((image) => image.decode().then(() => image.naturalWidth, () => 0))),
    );
    const result = {
      status: (await status.innerText()).trim(),
      pictures,
      asked: (await block.locator(".request-url pre").innerText()).trim(),
      tags: await page.locator(".opblock-tag").evaluateAll((tags) => tags.map((tag) => tag.dataset.tag)),
      methods: await page
        .locator(".opblock-summary-method")
        .evaluateAll((methods) => [...new Set(methods.map((method) => method.textContent))]),
    };
    if (png) {
      await block.locator(".request-url").scrollIntoViewIfNeeded();
      await page.screenshot({ path: png });
    }
    return result;
  } catch (error) {
    return { error: String(error) };
  } finally {
    await page.close();
  }
}

const browser = await chromium.launch({ executablePath, timeout, args: ["--no-sandbox"] });
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await tried(JSON.parse(line))));
}
await browser.close();
