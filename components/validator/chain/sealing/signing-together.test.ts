import { afterEach, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { Cluster } from '../../testing/cluster.ts';
import { type FakeSigner, fakeSigner } from '../../testing/fake-signer.ts';
import { testKey } from '../../testing/keys.ts';
import { World } from '../../testing/world.ts';
import type { SignerBatch, SignerRequest } from './ports.ts';
import { signerFor } from './signer-key.ts';

const worlds: (World | Cluster)[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.remove();
});

const quickRounds = { leaderElection: { heartbeatIntervalMs: 100, leaderTimeoutMs: 101 } };

async function openWorld(policy?: object): Promise<World> {
  const world = new World();
  worlds.push(world);
  await world.open();
  await world.begin(policy);
  world.signer.signed.length = 0;
  return world;
}

/** A request that never returns, as a dying process leaves it. */
const never = () => new Promise<never>(() => {});

const kindsOf = (requests: readonly SignerRequest[]) =>
  requests.map((request) => (request.kind === 'consensus' ? request.message.type : request.kind));

/** Replaces the answer to batches; the returned function restores it. */
function onBatch(
  signer: FakeSigner,
  act: (sign: () => ReturnType<FakeSigner['signBatch']>) => Promise<never>,
) {
  const { signBatch } = signer;
  const batches: SignerBatch[] = [];
  signer.signBatch = (batch, publicKey) => {
    batches.push(batch);
    return act(() => signBatch(batch, publicKey));
  };
  return { batches, restore: () => Object.assign(signer, { signBatch }) };
}

describe('a set of one', () => {
  it('has everything of a height signed in one request, attestation included', async () => {
    const world = await openWorld();
    await world.submit(world.sign().text);
    await world.sealed(2);
    expect(kindsOf(world.signer.signed)).toEqual([1, 2, 3, 'attestation']);
    const { hash } = world.ledger.dockets[1]?.docket.header ?? {};
    await waitFor(() => world.ledger.attestations.some(({ docketHash }) => docketHash === hash));
  });

  it('asks for one message after the other when the signing component is of an earlier version', async () => {
    const world = await openWorld();
    world.signer.signsBatches = false;
    const { batches } = onBatch(world.signer, never);
    await world.submit(world.sign().text);
    await world.sealed(2);
    expect(batches).toEqual([]);
    expect(kindsOf(world.signer.signed)).toEqual([1, 2, 3, 'attestation']);
  });

  it('falls back when a replica of an earlier version answers, and decides the same docket', async () => {
    const world = await openWorld();
    const { batches } = onBatch(world.signer, async () => {
      throw new AppError('invalid', 'INVALID_REQUEST', 'The message has no known type');
    });
    await world.submit(world.sign().text);
    await world.sealed(2);
    expect(batches).toHaveLength(1);
    expect(world.ledger.dockets[1]?.certificate).toMatchObject({
      round: 0,
      docketHash: batches[0]?.messages[0]?.docket?.docketHash,
    });
  });

  for (const [when, sign] of [
    ['before it was signed', never],
    ['after it was signed', (sign: () => Promise<unknown>) => sign().then(never)],
  ] as const) {
    it(`repeats the batch after a crash ${when}, and decides the same docket`, async () => {
      const world = await openWorld();
      const { batches, restore } = onBatch(world.signer, sign);
      await world.submit(world.sign().text);
      await waitFor(() => batches.length === 1);
      await world.close();
      restore();
      const again = onBatch(world.signer, (repeat) => repeat() as Promise<never>);
      await world.open();
      await world.sealed(2);
      expect(again.batches[0]?.messages).toEqual(batches[0]?.messages);
      expect(world.ledger.dockets[1]?.certificate).toMatchObject({
        round: 0,
        docketHash: batches[0]?.messages[0]?.docket?.docketHash,
      });
    });
  }

  it('decides another docket in a later round when the batch of a crashed process is refused', async () => {
    const world = await openWorld(quickRounds);
    const { batches, restore } = onBatch(world.signer, never);
    await world.submit(world.sign().text);
    await waitFor(() => batches.length === 1);
    await world.close();
    restore();
    const [batch] = batches;
    const [, , precommit] = batch?.messages ?? [];
    if (precommit === undefined) throw new Error('there is no precommit in the batch');
    await world.signer.sign({ kind: 'consensus', message: { ...precommit, docket: undefined } });
    await world.open();
    await world.sealed(2);
    expect(world.ledger.dockets[1]?.certificate.round).toBeGreaterThan(0);
    await world.close();
    await world.open();
    await world.submit(world.sign().text);
    await world.sealed(3);
  });

  it('decides the docket of a crashed process by its precommit alone when a component of the version before answers', async () => {
    const world = await openWorld();
    const { batches, restore } = onBatch(world.signer, (sign) => sign().then(never));
    await world.submit(world.sign().text);
    await waitFor(() => batches.length === 1);
    await world.close();
    restore();
    world.signer.signsBatches = false;
    world.signer.signed.length = 0;
    await world.open();
    await world.sealed(2);
    expect(kindsOf(world.signer.signed).slice(0, 1)).toEqual([3]);
    expect(world.ledger.dockets[1]?.certificate).toMatchObject({
      round: 0,
      docketHash: batches[0]?.messages[0]?.docket?.docketHash,
    });
    await world.submit(world.sign().text);
    await world.sealed(3);
  });

  it('does not vote nil while the batch is being signed, however long that takes', async () => {
    const world = await openWorld(quickRounds);
    const answered = Promise.withResolvers<void>();
    const { batches } = onBatch(world.signer, async (sign) => {
      await answered.promise;
      return (await sign()) as never;
    });
    await world.submit(world.sign().text);
    await waitFor(() => batches.length === 1);
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(world.register.facts).toMatchObject({ round: 0, step: 'propose' });
    answered.resolve();
    await world.sealed(2);
    expect(world.ledger.dockets[1]?.certificate.round).toBe(0);
    expect(batches).toHaveLength(1);
  });

  it('signs nothing more once its identity is fenced while a batch is being signed', async () => {
    const world = await openWorld();
    onBatch(world.signer, async () => {
      throw new AppError('forbidden', 'SIGNER_FENCED', 'A newer holder signs');
    });
    await world.submit(world.sign().text);
    await waitFor(() => world.engine.conditions().length > 0);
    expect(world.engine.conditions()).toMatchObject([{ type: 'SealingStopped' }]);
    expect(world.ledger.dockets).toHaveLength(1);
  });

  it('releases nothing of a batch whose register halts meanwhile', async () => {
    const world = await openWorld();
    const answered = Promise.withResolvers<void>();
    const { batches } = onBatch(world.signer, async (sign) => {
      await answered.promise;
      return (await sign()) as never;
    });
    await world.submit(world.sign().text);
    await waitFor(() => batches.length === 1);
    world.register.halt('a test halts it');
    answered.resolve();
    await waitFor(() => world.signer.signed.length === 4);
    await new Promise((resolve) => setImmediate(resolve));
    expect(world.register.facts).toMatchObject({ height: 1, unstored: 0 });
  });
});

describe('a set of several', () => {
  it('signs a proposal with the own prevote and never a precommit', async () => {
    const cluster = await new Cluster(4).open();
    worlds.push(cluster);
    const batches = cluster.members.map(({ signer }) => {
      const { signBatch } = signer;
      const asked: SignerBatch[] = [];
      signer.signBatch = (batch, publicKey) => {
        asked.push(batch);
        return signBatch(batch, publicKey);
      };
      return asked;
    });
    await cluster.begin();
    for (let n = 1; n <= 6; n += 1) {
      await cluster.submit(cluster.member(n % 4), { payload: { n } });
      await cluster.sealed(n + 1);
    }
    await cluster.agreed();
    const asked = batches.flat();
    expect(asked.length).toBeGreaterThan(4);
    for (const { messages, attestation } of asked) {
      expect(messages.map(({ type }) => type)).toEqual([1, 2]);
      expect(attestation).toBeUndefined();
    }
  });
});

it('a batch is signed with the key that the set of the height names', async () => {
  const [first, second] = [testKey(7), testKey(8)];
  const signer = fakeSigner(first, 'validator-0', second);
  const keys: (string | undefined)[] = [];
  signer.signBatch = async (_, publicKey) => {
    keys.push(publicKey);
    return { messages: [] };
  };
  for (const { publicKey } of [first, second]) {
    const members = [{ validatorId: 'validator-0', publicKey, algorithm: 'ED25519' }] as const;
    await signerFor(members, 'validator-0', signer).signBatch({ messages: [] });
  }
  expect(keys).toEqual([undefined, second.publicKey]);
});
