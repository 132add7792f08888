// A strip chart of the last seconds on a plain canvas.

import { niceCeiling, plain } from "./panels/format";

export const SPAN = 10; // [s] shown
const LONGEST_GAP = 1; // [s]; what was jumped over is left open, not bridged by a line
const SMALLEST_TOP = 0.2; // [N]; quieter than this stays near the bottom
const MARGIN = { left: 34, right: 8, top: 10, bottom: 18 };

export interface Sample {
  time: number;
  value: number;
}

export class StripChart {
  private readonly samples: Sample[] = [];
  private width = 0;
  private height = 0;

  constructor(readonly canvas: HTMLCanvasElement, private readonly unit: string) {}

  /** Time that goes back means another world: what was there is forgotten. */
  add(time: number, value: number): void {
    const last = this.samples.at(-1);
    if (last !== undefined && time < last.time) this.clear();
    if (last?.time === time) return;
    this.samples.push({ time, value });
    while (this.samples.length > 0 && this.samples[0].time < time - SPAN - 0.5) this.samples.shift();
  }

  clear(): void {
    this.samples.length = 0;
  }

  latest(): number {
    return this.samples.at(-1)?.value ?? 0;
  }

  peak(): number {
    return this.samples.reduce((most, sample) => Math.max(most, sample.value), 0);
  }

  draw(): void {
    const context = this.fit();
    if (context === null) return;
    context.clearRect(0, 0, this.width, this.height);
    const top = niceCeiling(Math.max(this.peak() * 1.05, SMALLEST_TOP));
    this.drawGrid(context, top);
    if (this.samples.length > 1) this.drawLine(context, top);
  }

  private x(time: number): number {
    const now = this.samples.at(-1)?.time ?? 0;
    return this.width - MARGIN.right - ((now - time) / SPAN) * (this.width - MARGIN.left - MARGIN.right);
  }

  private y(value: number, top: number): number {
    return this.height - MARGIN.bottom - (value / top) * (this.height - MARGIN.top - MARGIN.bottom);
  }

  private fit(): CanvasRenderingContext2D | null {
    const { clientWidth, clientHeight } = this.canvas;
    if (clientWidth === 0) return null;
    const ratio = Math.min(window.devicePixelRatio, 2);
    if (clientWidth !== this.width || clientHeight !== this.height || this.canvas.width !== Math.round(clientWidth * ratio)) {
      this.width = clientWidth;
      this.height = clientHeight;
      this.canvas.width = Math.round(clientWidth * ratio);
      this.canvas.height = Math.round(clientHeight * ratio);
    }
    const context = this.canvas.getContext("2d");
    context?.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
  }

  private drawGrid(context: CanvasRenderingContext2D, top: number): void {
    context.font = "10.5px system-ui, sans-serif";
    context.fillStyle = "#8b9aa5";
    context.strokeStyle = "rgba(255, 255, 255, 0.08)";
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const share of [0, 0.5, 1]) {
      const y = Math.round(this.y(share * top, top)) + 0.5;
      line(context, MARGIN.left, y, this.width - MARGIN.right, y);
      context.fillText(share === 1 ? `${plain(top)} ${this.unit}` : plain(share * top), MARGIN.left - 5, y);
    }
    const now = this.samples.at(-1)?.time ?? 0;
    context.textBaseline = "alphabetic";
    for (const ago of [10, 5, 0]) {
      context.textAlign = ago === 10 ? "left" : ago === 0 ? "right" : "center";
      context.fillText(ago === 0 ? "now" : `−${ago} s`, this.x(now - ago), this.height - 5);
    }
  }

  private drawLine(context: CanvasRenderingContext2D, top: number): void {
    context.save();
    context.beginPath();
    context.rect(MARGIN.left, 0, this.width - MARGIN.left - MARGIN.right, this.height - MARGIN.bottom + 1);
    context.clip();
    const fill = context.createLinearGradient(0, MARGIN.top, 0, this.height - MARGIN.bottom);
    fill.addColorStop(0, "rgba(255, 209, 102, 0.32)");
    fill.addColorStop(1, "rgba(255, 209, 102, 0.02)");
    context.fillStyle = fill;
    context.strokeStyle = "#ffd166";
    context.lineWidth = 1.75;
    context.lineJoin = "round";
    for (const stretch of stretches(this.samples)) {
      context.beginPath();
      for (const sample of stretch) context.lineTo(this.x(sample.time), this.y(sample.value, top));
      context.stroke();
      context.lineTo(this.x(stretch[stretch.length - 1].time), this.y(0, top));
      context.lineTo(this.x(stretch[0].time), this.y(0, top));
      context.fill();
    }
    this.drawPeak(context, top);
    context.restore();
  }

  private drawPeak(context: CanvasRenderingContext2D, top: number): void {
    const peak = this.peak();
    if (peak < 0.02 * top) return;
    const y = Math.round(this.y(peak, top)) + 0.5;
    context.setLineDash([3, 4]);
    context.strokeStyle = "rgba(255, 209, 102, 0.5)";
    context.lineWidth = 1;
    line(context, MARGIN.left, y, this.width - MARGIN.right, y);
    context.setLineDash([]);
  }
}

/** Samples that follow each other without a jump. */
export function stretches(samples: Sample[]): Sample[][] {
  const found: Sample[][] = [];
  samples.forEach((sample, i) => {
    if (i === 0 || sample.time - samples[i - 1].time > LONGEST_GAP) found.push([]);
    found[found.length - 1].push(sample);
  });
  return found;
}

function line(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}
