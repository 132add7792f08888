// The line to the server: says hello, keeps itself alive, and comes back after it was lost.

import { PROTOCOL } from "./protocol";
import type { ClientMessage, ServerMessage } from "./protocol";
import { WireError, decodeMessage, encodeMessage } from "./wire";

const FIRST_DELAY = 500; // [ms]
const LONGEST_DELAY = 8000; // [ms]
const PING_EVERY = 2000; // [ms]
const SILENCE_IS_LOSS = 8000; // [ms]
const STEADY = 5000; // [ms] that a line must hold before a loss counts as the first again

export type Line =
  | { state: "connecting"; attempt: number }
  | { state: "open" }
  | { state: "lost"; attempt: number; retryAt: number }
  | { state: "refused"; message: string };

export interface ConnectionEvents {
  message(message: ServerMessage): void;
  line(line: Line): void;
  /** The server sent what this page cannot read; the line stays. */
  unreadable(error: WireError): void;
}

/** The part of a WebSocket that is used, so that tests can stand in for it. */
export type Socket = Pick<WebSocket, "binaryType" | "readyState" | "onopen" | "onclose" | "onmessage" | "send" | "close">;

/** Doubles from half a second to eight, with ±20 % so that many browsers do not return at the same instant [ms]. */
export function retryDelay(attempt: number, random: number): number {
  return Math.min(FIRST_DELAY * 2 ** attempt, LONGEST_DELAY) * (0.8 + 0.4 * random);
}

export function socketAddress(page: { protocol: string; host: string; pathname: string; search: string }): string {
  const scheme = page.protocol === "https:" ? "wss:" : "ws:";
  const given = new URLSearchParams(page.search);
  const shown = ["token", "room", "watch"].flatMap((name) => {
    const value = given.get(name);
    return value === null ? [] : [`${name}=${encodeURIComponent(value)}`];
  });
  const folder = page.pathname.replace(/[^/]*$/, "");
  return `${scheme}//${page.host}${folder}ws${shown.length === 0 ? "" : `?${shown.join("&")}`}`;
}

export class Connection {
  line: Line = { state: "connecting", attempt: 0 };
  /** Time for a message there and back, newest [ms]. */
  roundTrip: number | null = null;
  private socket: Socket | null = null;
  private attempt = 0;
  private heardAt = 0;
  private openedAt = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private heartbeat: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly open: () => Socket,
    private readonly events: ConnectionEvents,
    private readonly now: () => number = () => performance.now(),
    private readonly random: () => number = Math.random,
  ) {}

  start(): void {
    clearTimeout(this.timer);
    this.setLine({ state: "connecting", attempt: this.attempt });
    const socket = this.open();
    this.socket = socket;
    this.heardAt = this.now();
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.send({ type: "hello", protocol: PROTOCOL });
    socket.onmessage = (event: MessageEvent<unknown>) => {
      if (this.socket === socket && event.data instanceof ArrayBuffer) this.receive(event.data);
    };
    socket.onclose = () => {
      if (this.socket === socket) this.lose();
    };
    clearInterval(this.heartbeat);
    this.heartbeat = setInterval(() => this.beat(), PING_EVERY);
  }

  /** False when the line is down: the message is dropped, never kept for later. */
  send(message: ClientMessage): boolean {
    if (this.socket?.readyState !== 1) return false;
    this.socket.send(encodeMessage(message));
    return true;
  }

  retryNow(): void {
    if (this.line.state === "lost") this.start();
  }

  /** The page goes: its line too, or a browser that keeps the page for "back" would hold the instruments for good. */
  leave(): void {
    clearTimeout(this.timer);
    this.drop();
  }

  private receive(data: ArrayBuffer): void {
    this.heardAt = this.now();
    let message: ServerMessage;
    try {
      message = decodeMessage(data);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.events.unreadable(error);
      return;
    }
    if (message.type === "welcome" && message.protocol !== PROTOCOL) {
      this.refuse(`This page speaks protocol ${PROTOCOL}, the server ${message.protocol}.`);
      return;
    }
    if (message.type === "problem" && message.code === "protocol") {
      this.refuse(message.message);
      return;
    }
    if (message.type === "welcome") {
      this.openedAt = this.now();
      this.setLine({ state: "open" });
    }
    if (message.type === "pong") this.roundTrip = this.now() - message.client_time;
    this.events.message(message);
  }

  private beat(): void {
    if (this.now() - this.heardAt > SILENCE_IS_LOSS) this.lose();
    else this.send({ type: "ping", client_time: this.now() });
  }

  private drop(): void {
    clearInterval(this.heartbeat);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  private lose(): void {
    if (this.line.state === "open" && this.now() - this.openedAt > STEADY) this.attempt = 0;
    this.drop();
    const delay = retryDelay(this.attempt, this.random());
    this.attempt += 1;
    this.setLine({ state: "lost", attempt: this.attempt, retryAt: this.now() + delay });
    this.timer = setTimeout(() => this.start(), delay);
  }

  // Another protocol will not become ours by trying again.
  private refuse(message: string): void {
    this.drop();
    this.setLine({ state: "refused", message });
  }

  private setLine(line: Line): void {
    this.line = line;
    this.events.line(line);
  }
}
