import { defineConfig } from "vitest/config";

// `npm run dev` draws against a viscera server on this address.
const server = "http://127.0.0.1:8420";

export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/viscera/server/static",
    emptyOutDir: true,
    // The page's content security policy allows files from the server only, no data: addresses.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 900,
  },
  server: {
    proxy: {
      "/ws": { target: server, ws: true, changeOrigin: true },
      "/api": { target: server, changeOrigin: true },
    },
  },
  test: { include: ["test/**/*.test.ts"], environment: "node" },
});
