// Whether the browser plays the videos that are named: how far it came, and how many pictures it has shown.

import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { later, openBrowser, PATIENCE } from "./browser.mjs";

const { context, close } = await openBrowser();
const found = {};
for (const path of process.argv.slice(4)) {
  const kind = extname(path).slice(1);
  const page = await context.newPage();
  const data = readFileSync(path).toString("base64");
  await page.setContent(`<video muted autoplay src="data:video/${kind};base64,${data}"></video>`);
  for (const end = Date.now() + PATIENCE; Date.now() < end; await later(100)) {
    found[kind] = await page.evaluate(() => {
      const video = document.querySelector("video");
      return { time: video.currentTime, width: video.videoWidth, ended: video.ended, error: video.error?.message ?? "" };
    });
    if (found[kind].ended || found[kind].error !== "") break;
  }
}
await close();
console.log(JSON.stringify(found));
