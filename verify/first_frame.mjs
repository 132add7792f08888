// Reads an address from standard input, opens it in a browser that is already running, and says once a frame is drawn.

import { once } from "node:events";
import { createInterface } from "node:readline";
import { openBrowser, openPage } from "../tests/browser/browser.mjs";

const { context, close } = await openBrowser();
console.log("ready");
const [address] = await once(createInterface({ input: process.stdin }), "line");
const { page } = await openPage(context, address);
console.log(`drawn ${await page.evaluate(() => window.viscera.firstFrame)}`);
await close();
process.exit(0);
