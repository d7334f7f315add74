// Opens each page of a folder in Chromium, as people will: light and dark, narrow and wide, with and without scripts.
//
//   node check.mjs DIR CHROMIUM [SCREENSHOTS]
//
// Fails on a serious or critical violation of axe, a request, a message on the console, a page wider than the screen,
// a link into nothing, or a filter that does not filter.

import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [dir, executablePath, screenshots] = process.argv.slice(2);
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const names = (await readdir(dir)).filter((name) => name.endsWith(".html")).sort();
if (names.length === 0) throw new Error(`no page in ${dir}`);

// No sandbox: checks run as root in containers, and open our own pages only.
const browser = await chromium.launch({
  executablePath,
  args: ["no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
    "disable-component-update", "disable-sync"].map((flag) => `--${flag}`),
});
let wrong = 0;
for (const name of names) {
  for (const width of [1400, 400]) {
    for (const colorScheme of ["light", "dark"]) {
      // Without scripts colours are no different; axe itself is a script.
      for (const javaScriptEnabled of colorScheme === "light" ? [false, true] : [true]) {
        const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, javaScriptEnabled });
        const found = await look(context, name, javaScriptEnabled, `${width}-${colorScheme}`);
        for (const one of found) {
          console.error(`${name} (${width} px, ${colorScheme}, scripts ${javaScriptEnabled ? "on" : "off"}): ${one}`);
        }
        wrong += found.length;
        await context.close();
      }
    }
  }
}
await browser.close();
console.log(`${names.length} pages in 6 settings each: ${wrong} problems`);
process.exitCode = wrong === 0 ? 0 : 1;

async function look(context, name, scripts, setting) {
  const found = [];
  const page = await context.newPage();
  const url = pathToFileURL(join(dir, name)).href;
  page.on("console", (message) => found.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => found.push(`error: ${error}`));
  page.on("request", (request) => request.url().split("#")[0] === url || found.push(`request for ${request.url()}`));
  await page.goto(url);
  found.push(...(await keyboard(page)), ...(await filter(page)));
  if (screenshots && scripts) {
    await page.screenshot({ path: join(screenshots, `${name.replace(/\.html$/, "")}-${setting}.png`), fullPage: true });
  }
  if (scripts) {
    // What is folded is part of the page too.
    await page.evaluate(() => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
    found.push(...(await page.evaluate(links)), ...(await page.evaluate(overflow)));
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
    for (const { id, impact, help, nodes } of violations) {
      const grave = impact === "serious" || impact === "critical";
      if (grave) found.push(`axe ${impact} ${id}: ${help}: ${nodes.slice(0, 3).map((node) => node.html).join(" | ")}`);
      else console.log(`${name} (${setting}): axe ${impact} ${id}: ${help} (${nodes.length})`);
    }
  }
  return found;
}

// The first stop of the keyboard is the link to the answer, and it leads there.
async function keyboard(page) {
  await page.keyboard.press("Tab");
  const skip = page.locator("a.skip:focus");
  if ((await skip.count()) !== 1 || !(await skip.isVisible())) return ["the first stop of the keyboard is not the skip link"];
  await page.keyboard.press("Enter");
  return (await page.locator("main:focus").count()) === 1 ? [] : ["the skip link does not lead to the answer"];
}

// A verdict that is chosen leaves its own rows only; that needs no script.
async function filter(page) {
  const found = [];
  for (const verdict of ["exposed", "shared", "unowned", "exactly-one", "platform-only"]) {
    const choice = page.locator(`#show-${verdict}`);
    if ((await choice.count()) === 0) continue;
    await choice.check();
    const others = await page.locator(`.secret:not(.${verdict}):visible, .namespace:not(.${verdict}):visible`).count();
    const own = await page.locator(`.namespace.${verdict}:visible`).count();
    if (others > 0 || own === 0) found.push(`filter ${verdict}: ${own} namespaces shown, ${others} things too many`);
  }
  const all = page.locator("#show-all");
  if ((await all.count()) > 0) await all.check();
  return found;
}

function links() {
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  const twice = ids.filter((id, at) => ids.indexOf(id) !== at);
  const lost = [...document.querySelectorAll("a[href]")].map((one) => one.getAttribute("href"))
    .filter((href) => !href.startsWith("#") || !document.getElementById(href.slice(1)));
  return [...twice.map((id) => `id ${id} is there twice`), ...lost.map((href) => `link into nothing: ${href}`)];
}

function overflow() {
  const { scrollWidth, clientWidth } = document.documentElement;
  return scrollWidth > clientWidth ? [`wider than the screen: ${scrollWidth} of ${clientWidth} px`] : [];
}
