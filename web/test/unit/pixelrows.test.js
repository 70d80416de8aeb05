// Narrow frames as pixels: colours mix by the parts that frames cover.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { packColour } from '../../src/colors.js';
import { PixelRows, mixed } from '../../src/pixelrows.js';
import { random } from './profiles.js';

const [RED, BLUE, WHITE] = ['#ff0000', '#0000ff', '#ffffff'].map(packColour);
const channels = (colour) => [0, 8, 16, 24].map((shift) => (colour >>> shift) & 255);

test('colours of CSS become pixels', () => {
  assert.deepEqual(channels(packColour('#12ab9f')), [0x12, 0xab, 0x9f, 255]);
  for (const [css, rgb] of [
    ['hsl(0 100% 50%)', [255, 0, 0]], ['hsl(120 100.0% 25.0%)', [0, 128, 0]], ['hsl(-120.0 100% 50%)', [0, 0, 255]],
    ['hsl(36 12% 84%)', [219, 215, 209]], ['hsl(360 0% 50%)', [128, 128, 128]],
  ]) {
    assert.deepEqual(channels(packColour(css)), [...rgb, 255], css);
  }
});

test('mixed colours lie between', () => {
  assert.deepEqual(channels(mixed(RED, BLUE, 0.5)), [128, 0, 128, 255]);
  assert.equal(mixed(RED, BLUE, 0), RED);
  assert.equal(mixed(RED, BLUE, 1), BLUE);
});

test('frames that fill a pixel together leave nothing of the background', () => {
  const rows = new PixelRows();
  rows.begin(3, 2, WHITE);
  for (let part = 0; part < 10; part++) {
    rows.add(1, 1 + part / 10, 1 + (part + 1) / 10, part % 2 === 0 ? RED : BLUE);
  }
  rows.add(1, 2, 2.25, RED);
  rows.finish();
  const [red, green, blue] = channels(rows.pixels[4]);
  assert.ok(green === 0 && Math.abs(red - 128) < 8 && Math.abs(blue - 128) < 8, `${red} ${green} ${blue}`);
  assert.deepEqual(channels(rows.pixels[5]), [255, 191, 191, 255], 'a quarter is covered');
  assert.deepEqual([...rows.pixels.slice(0, 4)], [WHITE, WHITE, WHITE, WHITE]);
  assert.deepEqual([...rows.used], [0, 1]);
});

test('a mark is seen however narrow it is', () => {
  const rows = new PixelRows();
  rows.begin(4, 1, WHITE);
  rows.addMark(0, 1.1, 1.101, BLUE);
  rows.addMark(0, 3.9999, 4, BLUE);
  rows.add(0, 0, 4, RED);
  rows.finish();
  assert.deepEqual([...rows.pixels], [RED, BLUE, RED, BLUE]);
});

test('frames anywhere stay in their row', () => {
  const below = random(4);
  const rows = new PixelRows();
  for (let round = 0; round < 300; round++) {
    rows.begin(20, 3, WHITE);
    const left = below(2400) / 100 - 2;
    rows.add(1, left, left + below(900) / 100, RED);
    rows.addMark(1, Math.min(19.99, Math.max(0, left)), 40, BLUE);
    rows.finish();
    assert.ok([...rows.pixels.slice(0, 20), ...rows.pixels.slice(40)].every((pixel) => pixel === WHITE));
  }
});
