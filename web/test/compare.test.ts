import { describe, expect, it } from "vitest";
import { stretches } from "../src/chart";
import { sidesOf } from "../src/compare";
import { socketAddress } from "../src/connection";

describe("two recordings side by side", () => {
  const [first, second] = sidesOf("http://host/x/?watch=a.h5&beside=b.h5&at=3.00&token=t");

  it("are two pages, the second in a room of its own", () => {
    expect(first).toBe("http://host/x/?watch=a.h5&at=3.00&token=t&compared=1");
    expect(second).toBe("http://host/x/?watch=b.h5&token=t&compared=1&room=beside");
  });

  it("speak to the server in their rooms", () => {
    expect(socketAddress(new URL(second))).toBe("ws://host/x/ws?token=t&room=beside&watch=b.h5");
  });
});

describe("the force along a recording", () => {
  it("has no line over what was jumped over", () => {
    const samples = [0, 0.2, 0.4, 5, 5.2].map((time) => ({ time, value: 1 }));
    expect(stretches(samples).map((one) => one.map(({ time }) => time))).toEqual([[0, 0.2, 0.4], [5, 5.2]]);
    expect(stretches([])).toEqual([]);
  });
});
