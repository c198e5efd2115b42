import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sha256 } from '#core/crypto/hash.ts';
import { signBytes } from '#core/ledger/consensus.ts';
import { consensusMessage, newRegister, type Place, wire } from '../testing/consensus-messages.ts';
import { openFixture, openReplica, type Replica, type ReplicaOptions } from '../testing/fixture.ts';
import { SignerStream } from '../testing/signer-stream.ts';

const validatorId = 'validator-0';
const rank = ({ height, round, type }: Place) => height * 100 + round * 10 + type;
const nameOf = (place: Place | undefined) => (place === undefined ? '' : `${rank(place)}/${place.docket}`);
const hex = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString('hex');

/** The guard of one register, seen from outside. */
class Model {
  /** The messages that were signed last. */
  #kept: readonly Place[] = [];
  /** First released signature, by place. */
  readonly #signed = new Map<string, string>();

  /** Whether the guard signs messages: those at the beginning were signed last, and the others are above the last position. */
  signs(places: readonly Place[]): boolean {
    const repeated = places.findIndex((place) => !this.#isKept(place));
    return repeated === -1 || this.signsOneByOne(places.slice(repeated));
  }

  /** Whether the guard of the version before signs these messages one after the other: only the last one may be repeated. */
  signsOneByOne(places: readonly Place[]): boolean {
    let last = this.#kept.at(-1);
    for (const place of places) {
      const isAbove = last === undefined || rank(place) > rank(last);
      if (!isAbove && nameOf(place) !== nameOf(last)) return false;
      last = place;
    }
    return true;
  }

  /** Released signatures: a position has one docket for ever, and a message one signature. */
  release(places: readonly Place[], signatures: readonly string[]): void {
    for (const [index, place] of places.entries()) {
      const signature = signatures[index] ?? '';
      expect(this.#signed.get(nameOf(place)) ?? signature).toBe(signature);
      this.#signed.set(nameOf(place), signature);
    }
    const positions = [...this.#signed.keys()].map((name) => name.slice(0, -2));
    expect(new Set(positions).size).toBe(positions.length);
    if (!places.every((place) => this.#isKept(place))) this.#kept = places;
  }

  #isKept(place: Place): boolean {
    return this.#kept.some((each) => nameOf(each) === nameOf(place));
  }
}

interface Step {
  readonly places: readonly Place[];
  /** `lost`: the answer never arrives, and the process starts again. `before`: a replica of the version before answers. */
  readonly by: 'stream' | 'lost' | 'other' | 'before';
}

const anyStep: fc.Arbitrary<Step> = fc.record({
  places: fc
    .record({
      height: fc.integer({ min: 1, max: 3 }),
      round: fc.integer({ min: 0, max: 1 }),
      docket: fc.constantFrom('a', 'b'),
      types: fc.constantFrom([1], [2], [3], [1, 2], [2, 3], [1, 3], [1, 2, 3], [1, 2, 3]),
    })
    .map(({ types, ...round }) => types.map((type) => ({ ...round, type }))),
  by: fc.constantFrom('stream', 'stream', 'lost', 'other', 'before'),
});

/** The statement of the version before, as a replica of it runs during a rolling upgrade. */
const guardBefore = `
  INSERT INTO wallet.signing_guard AS g (register_id, validator_id, height, round, step, digest, signature)
  VALUES ($1, $2, $3, $4, $5, $6, $7)
  ON CONFLICT (register_id, validator_id) DO UPDATE
    SET height = excluded.height, round = excluded.round, step = excluded.step,
        digest = excluded.digest, signature = excluded.signature
    WHERE (excluded.height, excluded.round, excluded.step) > (g.height, g.round, g.step)
  RETURNING 1`;

let first: Replica & ReplicaOptions;
let second: Replica;
let stream: SignerStream;

beforeAll(async () => {
  first = await openFixture('wallet_batch_model');
  second = await openReplica(first);
  stream = await open(first);
});
afterAll(async () => {
  await stream.close();
  await second.close();
  await first.close();
});

async function open(replica: Replica): Promise<SignerStream> {
  const opening = new SignerStream(replica, validatorId);
  expect((await opening.open(validatorId)).case).toBe('opened');
  return opening;
}

/** The validator starts again, here or at another replica, and fences its earlier stream. */
async function restart(replica: Replica): Promise<void> {
  const young = await open(replica);
  await stream.close();
  stream = young;
}

/** Signatures by the version before, which signs one message at a time; undefined when it refuses. */
async function askBefore(registerId: string, place: Place): Promise<string | undefined> {
  const digest = Buffer.from(sha256(signBytes(consensusMessage(registerId, place))));
  const signature = Buffer.concat([digest, digest]);
  const { height, round, type } = place;
  const values = [registerId, validatorId, height, round, type, digest, signature];
  const taken = await first.db.pool.query(guardBefore, values);
  if (taken.rows.length === 1) return hex(signature);
  const query = first.db.read.selectFrom('signing_guard').selectAll().where('register_id', '=', registerId);
  const row = await query.executeTakeFirstOrThrow();
  const isSame = Number(row.height) === height && Number(row.round) === round && row.step === type;
  return isSame && row.digest.equals(digest) ? hex(row.signature) : undefined;
}

/** Signatures by the stream; undefined when it refuses. */
async function ask(registerId: string, places: readonly Place[]): Promise<readonly string[] | undefined> {
  const messages = places.map((place) => wire(registerId, place));
  const [single] = messages;
  const answer =
    messages.length === 1 && single !== undefined
      ? await stream.vote(single)
      : await stream.send({ case: 'batch', value: { messages } });
  if (answer.case === 'signed') return [hex(answer.value?.signature)];
  if (answer.case === 'batch') return answer.value?.signatures?.map(hex);
  expect(answer).toMatchObject({ case: 'refusal', value: { code: 'DOUBLE_SIGN_REFUSED' } });
  return undefined;
}

async function runBefore(registerId: string, model: Model, { places }: Step): Promise<void> {
  for (const place of places.slice(0, 1)) {
    const signature = await askBefore(registerId, place);
    expect(signature !== undefined).toBe(model.signsOneByOne([place]));
    if (signature !== undefined) model.release([place], [signature]);
  }
}

async function run(registerId: string, model: Model, { places, by }: Step): Promise<void> {
  if (by === 'other') await restart(second);
  const released = await ask(registerId, places);
  expect(released !== undefined).toBe(model.signs(places));
  if (model.signsOneByOne(places)) expect(released).toBeDefined();
  if (released === undefined) return;
  model.release(places, released);
  if (by !== 'lost') return;
  await restart(first);
  expect(await ask(registerId, places)).toEqual(released);
}

test('batches agree with the guard of one message, through lost answers, restarts and replicas of the version before', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { maxLength: 14 }), async (steps) => {
      const registerId = newRegister();
      const model = new Model();
      for (const step of steps) await (step.by === 'before' ? runBefore : run)(registerId, model, step);
    }),
    { numRuns: 150 },
  );
});
