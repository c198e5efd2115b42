import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import type { Random } from './random.ts';

/** Bytes that begin as valid messages of one kind and are then corrupted. */
export interface Hostile {
  /** The next case: sometimes a whole message with wrong content, sometimes no message at all. */
  bytes(): Uint8Array;
}

const strangeTexts = [
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\u202e\u2066evil',
  '\ud83d\ude00'.repeat(20),
  "'; drop table dockets; --",
  '../../etc/passwd',
  '{"a":1}',
  'ff'.repeat(32),
  '0'.repeat(64),
  'F'.repeat(64),
  'validator-0',
  'validator-99',
  '-1',
  '1e309',
  'NaN',
  '__proto__',
  'constructor',
  '2026-11-21T10:00:00.0000000+00:00',
  '9999-12-31T23:59:59.9999999+00:00',
  '-271821-04-20T00:00:00Z',
] as const;
const strangeNumbers = [0, 1, 2, 3, 127, 128, 65_535, 2 ** 31 - 1, 2 ** 32 - 1] as const;
const strangeIntegers = [
  0n,
  1n,
  2n,
  2n ** 31n,
  2n ** 32n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 63n - 1n,
  2n ** 64n - 1n,
  -1n,
  -(2n ** 63n),
] as const;
const largeBytes = 256 * 1024;

type Fields = Record<string, unknown>;

/** A position in a message and what is changed there. */
interface Position {
  readonly parent: Fields | unknown[];
  readonly key: string | number;
}

/**
 * Corrupts valid messages: fields emptied, made huge or taken from elsewhere, lists repeated and reversed, numbers at
 * their limits, members of a oneof exchanged; and, now and then, the bytes themselves.
 */
export function hostileMessages<D extends DescMessage>(
  random: Random,
  schema: D,
  samples: readonly MessageInitShape<D>[],
): Hostile {
  const whole = samples.map((sample) => toBinary(schema, create(schema, sample)));
  const spoiled = (): Uint8Array => {
    const message: unknown = fromBinary(schema, random.pick(whole));
    const other: unknown = fromBinary(schema, random.pick(whole));
    const changes = random.whole(0, 3);
    for (let index = 0; index < changes; index += 1) {
      const position = random.pick(positionsOf(message));
      spoil(random, position, positionsOf(other));
    }
    try {
      return toBinary(schema, message as MessageShape<D>);
    } catch {
      // A value of another kind cannot be encoded; then the bytes are corrupted instead.
      return spoilBytes(random, random.pick(whole));
    }
  };
  return {
    bytes: () => {
      const roll = random.whole(0, 9);
      if (roll === 0) return random.bytes(random.whole(0, 200));
      if (roll <= 3) return spoilBytes(random, spoiled());
      return spoiled();
    },
  };
}

/** Corrupts a text, for interfaces that accept JSON. */
export function spoilText(random: Random, text: string): string {
  const at = random.whole(0, text.length);
  const to = Math.min(text.length, at + random.whole(0, 12));
  const piece = random.chance(0.5) ? random.pick(strangeTexts) : text.slice(0, random.whole(0, 40));
  const acts = [
    () => text.slice(0, at),
    () => text.slice(0, at) + text.slice(to),
    () => text.slice(0, at) + piece + text.slice(to),
    () => text.slice(0, at) + text.slice(at, to).repeat(random.whole(2, 50)) + text.slice(to),
    () => text.replace(/"[^"]*"/, JSON.stringify(piece)),
    () =>
      text.replace(/:("[^"]*"|\d+)/, `:${random.pick(['null', '[]', '{}', '-1', '1e400', 'true', '""'])}`),
    () => text.replace(/[{[]/, (bracket) => bracket.repeat(random.whole(2, 200))),
  ];
  return random.pick(acts)();
}

function positionsOf(value: unknown, found: Position[] = []): Position[] {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return found;
  const parent = value as Fields | unknown[];
  for (const key of Object.keys(parent)) {
    if (key === '$typeName' || key === '$unknown') continue;
    const position = { parent, key: Array.isArray(parent) ? Number(key) : key };
    found.push(position);
    if (found.length < 2_000) positionsOf(at(position), found);
  }
  return found;
}

function at({ parent, key }: Position): unknown {
  return (parent as Fields)[key];
}

function put({ parent, key }: Position, value: unknown): void {
  (parent as Fields)[key] = value;
}

function spoil(random: Random, position: Position, others: readonly Position[]): void {
  const value = at(position);
  const alike = others.filter((other) => kindOf(at(other)) === kindOf(value));
  if (alike.length > 0 && random.chance(0.3)) put(position, at(random.pick(alike)));
  else put(position, strange(random, value));
}

function kindOf(value: unknown): string {
  if (value instanceof Uint8Array) return 'bytes';
  return Array.isArray(value) ? 'list' : typeof value;
}

function strange(random: Random, value: unknown): unknown {
  if (typeof value === 'string') return strangeText(random, value);
  if (typeof value === 'number')
    return random.chance(0.3) ? value + random.whole(-2, 2) : random.pick(strangeNumbers);
  if (typeof value === 'bigint')
    return random.chance(0.4) ? value + BigInt(random.whole(-2, 2)) : random.pick(strangeIntegers);
  if (typeof value === 'boolean') return !value;
  if (value instanceof Uint8Array) return strangeBytes(random, value);
  if (Array.isArray(value)) return strangeList(random, value);
  return undefined;
}

function strangeText(random: Random, value: string): string {
  const roll = random.whole(0, 9);
  if (roll === 0) return 'x'.repeat(random.pick([200, 1_000, 10_000, 10_000, largeBytes]));
  if (roll <= 5) return random.pick(strangeTexts);
  return roll <= 7 ? spoilText(random, value) : value.toUpperCase();
}

function strangeBytes(random: Random, value: Uint8Array): Uint8Array {
  const length = random.pick([0, 1, 31, 33, 63, 65, value.length, value.length]);
  if (length !== value.length) return random.bytes(length);
  return random.chance(0.02) ? new Uint8Array(largeBytes) : spoilBytes(random, value);
}

function strangeList(random: Random, value: readonly unknown[]): unknown[] {
  const acts = [
    () => [],
    () => value.toReversed(),
    () => value.slice(1),
    () => [...value, ...value],
    () => value.flatMap((each) => Array<unknown>(random.pick([2, 2, 130, 600])).fill(each)).slice(0, 20_000),
  ];
  return random.pick(acts)();
}

function spoilBytes(random: Random, bytes: Uint8Array): Uint8Array {
  const changed = Buffer.from(bytes);
  const from = random.whole(0, changed.length);
  const to = Math.min(changed.length, from + random.whole(1, 64));
  const piece = random.bytes(random.whole(1, 16));
  const acts = [
    () => changed.subarray(0, from),
    () => Buffer.concat([changed.subarray(0, from), piece, changed.subarray(from)]),
    () => Buffer.concat([changed.subarray(0, from), changed.subarray(to)]),
    () => Buffer.concat([changed, changed.subarray(from, to), changed.subarray(from, to)]),
    () => {
      for (let flips = random.whole(1, 6); flips > 0 && changed.length > 0; flips -= 1) {
        changed[random.whole(0, changed.length - 1)] = random.whole(0, 255);
      }
      return changed;
    },
  ];
  return random.pick(acts)();
}
