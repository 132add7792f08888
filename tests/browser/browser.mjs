// Opens the page in a real Chromium. WebGL runs in software there, so that any machine can look at pixels.

import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
  "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--mute-audio",
];

/** A browser with a profile of its own, both gone after `close()`. */
export async function openBrowser({ width = 1280, height = 720, touch = false } = {}) {
  const profile = mkdtempSync(join(tmpdir(), "viscera-browser-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.VISCERA_BROWSER ?? "/usr/bin/chromium",
    headless: true, args: FLAGS, viewport: { width, height }, hasTouch: touch,
  });
  const close = async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  };
  return { context, close };
}

/** A page on `address` that notes its errors, once it has drawn a first frame. */
export async function openPage(context, address, { wait = true } = {}) {
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  await page.goto(address);
  if (wait) await drawn(page);
  return { page, errors };
}

export async function drawn(page) {
  await page.waitForFunction(() => window.viscera?.firstFrame !== null && window.viscera !== undefined, null, { timeout: 60_000 });
}

export function later(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
