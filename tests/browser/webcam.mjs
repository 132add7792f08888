// Gaze by webcam, with a rendered face before Chromium's fake camera: asked for, calibrated by nine dots, and followed.
// node webcam.mjs ADDRESS VIDEO FOLDER

import { join } from "node:path";
import { assert, decode, later, openBrowser, openPage } from "./browser.mjs";

const [address, video, folder] = process.argv.slice(2);
const PATIENCE = 180_000; // [ms] the landmark model runs in software here
const PLACES = 9;

const { context, close } = await openBrowser({ flags: [
  "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream", `--use-file-for-fake-video-capture=${video}`,
] });
const found = { ok: false, gazes: {} };
try {
  await context.grantPermissions(["camera"], { origin: new URL(address).origin });
  const { page, errors } = await openPage(context, "about:blank", { wait: false });
  let row = null;
  page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => {
    if (typeof payload === "string") return;
    const message = decode(payload);
    if (message.type === "set_table" && message.name === "gaze") row = message.rows[0];
  }));
  await page.goto(address);
  const asked = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.getByRole("button", { name: "Use my eyes (webcam)" }).click({ timeout: PATIENCE });
  found.early = asked.filter((path) => path.startsWith("/webcam/")).length;
  await page.getByRole("button", { name: "Calibrate" }).click({ timeout: PATIENCE });
  const camera = page.frames().find((frame) => frame.url().endsWith("/webcam.html"));
  /** Freezes the camera's picture while the face looks at a place, so that nothing depends on how fast this machine is. */
  const hold = async (number) => {
    await camera.evaluate(() => document.querySelector("video").play());
    for (const end = Date.now() + PATIENCE; Date.now() < end; await later(100)) {
      const seen = await camera.evaluate(() => {
        const film = document.querySelector("video"), canvas = document.createElement("canvas"), paint = canvas.getContext("2d");
        [canvas.width, canvas.height] = [film.videoWidth, film.videoHeight];
        film.pause(); // what is painted is what it stands at
        paint.drawImage(film, 0, 0);
        return [0, 1, 2, 3].reduce((sum, bit) => sum + (paint.getImageData(32 * bit + 16, 16, 1, 1).data[0] > 128 ? 2 ** bit : 0), 0);
      });
      if (seen === number) return;
      await camera.evaluate(() => document.querySelector("video").play());
    }
    throw new Error(`the face never looks at place ${number}`);
  };
  const dot = page.locator(".webcam-dot");
  for (let number = 0; number < PLACES; number++) {
    await hold(number);
    await later(1500); // what was on its way when the picture was frozen
    assert((await dot.getAttribute("data-number")) === String(number), `dot ${number} is shown`);
    if (number === 4) await page.screenshot({ path: join(folder, "webcam-dot.png") });
    await dot.click();
    await page.waitForFunction((next) => {
      const one = document.querySelector(".webcam-dot");
      return one.dataset.number === String(next) || document.querySelector(".webcam-sheet").hidden;
    }, number + 1, { timeout: PATIENCE });
  }
  found.status = await page.locator("#webcam [role=status]").textContent();
  for (const number of [0, 4, 8]) {
    await hold(number);
    await later(8000);
    found.gazes[number] = row.slice(14, 16);
    await page.screenshot({ path: join(folder, `webcam-${number}.png`) });
  }
  found.ok = true;
  found.errors = errors;
} catch (error) {
  found.error = String(error?.stack ?? error);
}
console.log(JSON.stringify(found));
await close();
