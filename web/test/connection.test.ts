import { decode, encode } from "@msgpack/msgpack";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Connection, retryDelay, socketAddress } from "../src/connection";
import type { Line, Socket } from "../src/connection";
import { PROTOCOL } from "../src/protocol";
import type { ServerMessage } from "../src/protocol";

class FakeSocket {
  binaryType: BinaryType = "blob";
  readyState = 0;
  onopen: (() => void) | null = null;
  onclose: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  readonly sent: unknown[] = [];
  closed = false;

  send(data: Uint8Array): void {
    this.sent.push(decode(data));
  }

  close(): void {
    this.closed = true;
    this.readyState = 3;
  }

  accept(protocol = PROTOCOL): void {
    this.readyState = 1;
    this.onopen?.();
    this.say({ type: "welcome", protocol, version: "0", client: 1, device: "", scenarios: [], trainer: false, trainers: false, trainee: "", training: false, cohort: false });
  }

  say(message: ServerMessage): void {
    this.onmessage?.({ data: encode(message).slice().buffer });
  }

  drop(): void {
    this.readyState = 3;
    this.onclose?.();
  }
}

describe("retry delay", () => {
  it("doubles from half a second to eight and stays there", () => {
    expect([0, 1, 2, 3, 4, 5, 20].map((attempt) => retryDelay(attempt, 0.5))).toEqual([500, 1000, 2000, 4000, 8000, 8000, 8000]);
  });

  it("spreads browsers by a fifth to either side", () => {
    expect(retryDelay(1, 0)).toBeCloseTo(800);
    expect(retryDelay(1, 1)).toBeCloseTo(1200);
  });
});

describe("socket address", () => {
  it("lies beside the page, with its token", () => {
    const page = { protocol: "http:", host: "localhost:8420", pathname: "/", search: "" };
    expect(socketAddress(page)).toBe("ws://localhost:8420/ws");
    expect(socketAddress({ ...page, search: "?token=a%26b&detail=full" })).toBe("ws://localhost:8420/ws?token=a%26b");
    expect(socketAddress({ ...page, protocol: "https:", pathname: "/lab/index.html" })).toBe("wss://localhost:8420/lab/ws");
  });
});

describe("connection", () => {
  let sockets: FakeSocket[];
  let lines: Line[];
  let messages: ServerMessage[];
  let connection: Connection;
  let unreadable: number;

  beforeEach(() => {
    vi.useFakeTimers();
    sockets = [];
    lines = [];
    messages = [];
    const open = () => {
      sockets.push(new FakeSocket());
      return sockets[sockets.length - 1] as unknown as Socket;
    };
    unreadable = 0;
    const events = {
      message: (m: ServerMessage) => messages.push(m),
      line: (line: Line) => lines.push(line),
      unreadable: () => unreadable++,
    };
    connection = new Connection(open, events, () => Date.now(), () => 0.5);
    connection.start();
  });
  afterEach(() => vi.useRealTimers());

  it("says hello first and is open once welcomed", () => {
    expect(connection.line.state).toBe("connecting");
    sockets[0].accept();
    expect(sockets[0].sent).toEqual([{ type: "hello", protocol: PROTOCOL }]);
    expect(connection.line.state).toBe("open");
  });

  it("comes back by itself, waiting longer after each failure", () => {
    sockets[0].accept();
    sockets[0].drop();
    expect(lines.at(-1)).toMatchObject({ state: "lost", attempt: 1 });
    vi.advanceTimersByTime(499);
    expect(sockets).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(sockets).toHaveLength(2);
    expect(lines.at(-1)).toEqual({ state: "connecting", attempt: 1 });
    sockets[1].drop();
    vi.advanceTimersByTime(999);
    expect(sockets).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(sockets).toHaveLength(3);
    sockets[2].accept();
    expect(connection.line.state).toBe("open");
  });

  it("keeps waiting longer when a server takes it and drops it at once", () => {
    sockets[0].accept();
    sockets[0].drop();
    vi.advanceTimersByTime(500);
    sockets[1].accept();
    sockets[1].drop();
    vi.advanceTimersByTime(999);
    expect(sockets).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(sockets).toHaveLength(3);
  });

  it("starts anew with short waits after a line that held", () => {
    sockets[0].drop();
    vi.advanceTimersByTime(500);
    sockets[1].accept();
    for (let i = 0; i < 4; i++) {
      vi.advanceTimersByTime(2000);
      sockets[1].say({ type: "pong", client_time: 0 });
    }
    sockets[1].drop();
    vi.advanceTimersByTime(500);
    expect(sockets).toHaveLength(3);
  });

  it("takes silence for loss", () => {
    sockets[0].accept();
    vi.advanceTimersByTime(7900);
    expect(connection.line.state).toBe("open");
    expect(sockets[0].sent).toContainEqual(expect.objectContaining({ type: "ping" }));
    vi.advanceTimersByTime(2200);
    expect(connection.line.state).not.toBe("open");
    expect(sockets[0].closed).toBe(true);
  });

  it("ends with the page and does not come back by itself; a page that is shown again opens another", () => {
    sockets[0].accept();
    connection.leave();
    expect(sockets[0].closed).toBe(true);
    sockets[0].drop();
    vi.advanceTimersByTime(60_000);
    expect(sockets).toHaveLength(1);
    connection.start();
    sockets[1].accept();
    expect(connection.line.state).toBe("open");
  });

  it("measures the way there and back", () => {
    sockets[0].accept();
    const sentAt = Date.now();
    vi.advanceTimersByTime(37);
    sockets[0].say({ type: "pong", client_time: sentAt });
    expect(connection.roundTrip).toBe(37);
  });

  it.each([
    ["another protocol in the welcome", (socket: FakeSocket) => socket.accept(PROTOCOL + 1)],
    ["a protocol problem", (socket: FakeSocket) => socket.say({ type: "problem", code: "protocol", message: "old", hint: "" })],
  ])("stops for good at %s", (_name, act) => {
    act(sockets[0]);
    expect(connection.line.state).toBe("refused");
    vi.advanceTimersByTime(60_000);
    expect(sockets).toHaveLength(1);
    expect(messages).toHaveLength(0);
  });

  it("drops what cannot be sent instead of keeping it", () => {
    expect(connection.send({ type: "restart" })).toBe(false);
    sockets[0].accept();
    expect(connection.send({ type: "restart" })).toBe(true);
    expect(sockets[0].sent.filter((m) => (m as { type: string }).type === "restart")).toHaveLength(1);
  });

  it("reports bytes it cannot read and stays on the line", () => {
    sockets[0].accept();
    sockets[0].onmessage?.({ data: new Uint8Array([0xc1]).buffer });
    expect(unreadable).toBe(1);
    expect(connection.line.state).toBe("open");
  });

  it("tries at once when asked", () => {
    sockets[0].drop();
    connection.retryNow();
    expect(sockets).toHaveLength(2);
    vi.advanceTimersByTime(600);
    expect(sockets).toHaveLength(2);
  });
});
