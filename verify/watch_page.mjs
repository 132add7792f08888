// Opens an address in a browser and keeps drawing it until standard input ends; then says how many frames it drew.

import { once } from "node:events";
import { openBrowser, openPage } from "../tests/browser/browser.mjs";

const { context, close } = await openBrowser();
const { page } = await openPage(context, process.argv[2]);
await page.evaluate(() => {
  window.drawn = 0;
  const count = () => { window.drawn += 1; window.requestAnimationFrame(count); };
  window.requestAnimationFrame(count);
});
console.log("drawing");
process.stdin.resume();
await once(process.stdin, "end");
console.log(`drawn ${await page.evaluate(() => window.drawn)}`);
await close();
process.exit(0);
