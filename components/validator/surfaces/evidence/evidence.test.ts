import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { afterEach, describe, expect, test } from 'vitest';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { AppError } from '#core/errors/errors.ts';
import { createHttpServer } from '#kit/http/http.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { ListEvidenceResponseSchema } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import { Cluster, type Member } from '../../testing/cluster.ts';
import { sendConflictingVotes } from '../../testing/equivocator.ts';
import { systemAdmin } from '../../testing/test-server.ts';
import { registerId } from '../../testing/world.ts';
import { type CollectDeps, collectEvidence } from './collect.ts';
import { presentEvidence } from './present.ts';
import { mountEvidence } from './routes.ts';
import { type HeldEvidence, parseHeldEvidence, wireHeld } from './wire.ts';

const clusters: Cluster[] = [];
afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.remove();
});
const verifier = createVerifier(nodeEd25519());

/** A set of four whose last member voted twice; all members hold the evidence. */
async function convicted(): Promise<Cluster> {
  const cluster = new Cluster(4);
  clusters.push(cluster);
  await cluster.open();
  await cluster.begin();
  await cluster.agreed();
  sendConflictingVotes(cluster, cluster.member(3), cluster.member(0));
  for (const member of cluster.members) {
    await waitFor(() => member.engine.peering.evidence(registerId).length === 1);
  }
  return cluster;
}

/** The evidence after its encoding. */
function travelled(member: Member): readonly HeldEvidence[] {
  const wire = create(ListEvidenceResponseSchema, wireHeld(member.engine.peering.evidence(registerId)));
  return parseHeldEvidence(
    fromBinary(ListEvidenceResponseSchema, toBinary(ListEvidenceResponseSchema, wire)),
  );
}

type Twist = (validatorId: string, held: readonly HeldEvidence[]) => readonly HeldEvidence[];

function depsOf(cluster: Cluster, self: string, twist: Twist = (_id, held) => held): CollectDeps {
  const find = (id: string) => cluster.members.find((member) => member.id === id);
  return {
    validatorId: self,
    verifier,
    evidence: (id) => find(self)?.engine.peering.evidence(id) ?? [],
    findRules: async (id) => (await cluster.ledger.findRegister(id))?.ledger,
    peerClients: {
      async evidence(validatorId) {
        const member = find(validatorId);
        if (member?.opened === undefined) throw new AppError('unavailable', 'UNAVAILABLE', 'away');
        return twist(validatorId, travelled(member));
      },
    },
  };
}

describe('the evidence of a set', { timeout: 40_000 }, () => {
  test('lets a third party verify both signatures, and names its holders', async () => {
    const cluster = await convicted();
    await cluster.stop(cluster.member(2));
    const answer = presentEvidence(await collectEvidence(depsOf(cluster, 'validator-0'), registerId));
    expect(answer).toMatchObject({ registerId, unreachable: ['validator-2'] });
    const [one, ...more] = answer.evidence;
    expect(more).toEqual([]);
    expect(one).toMatchObject({
      kind: 'duplicate-vote',
      validatorId: 'validator-3',
      validatorIds: ['validator-3'],
      height: 1,
      round: 0,
      step: 'prevote',
      heldBy: ['validator-0', 'validator-1', 'validator-3'],
    });
    const [signer] = one?.signers ?? [];
    for (const message of [one?.first, one?.second]) {
      if (message === undefined || !('signBytes' in message) || signer === undefined) throw new Error('none');
      expect(message).toMatchObject({ type: 2, registerId, height: 1, round: 0, polRound: -1 });
      const signed = {
        algorithm: signer.algorithm,
        publicKey: parsePublicKey(signer.algorithm, signer.publicKey),
        message: decodeBase64Any(message.signBytes),
        signature: decodeBase64Any(message.signature),
      };
      expect(verifier.verify(signed)).toBe(true);
    }
    expect(one?.first).not.toEqual(one?.second);
  });

  test('is the same at a validator outside the register', async () => {
    const cluster = await convicted();
    const own = presentEvidence(await collectEvidence(depsOf(cluster, 'validator-0'), registerId));
    const outside = presentEvidence(await collectEvidence(depsOf(cluster, 'validator-9'), registerId));
    expect(outside.evidence).toEqual(own.evidence);
    expect(outside.evidence[0]?.heldBy).toHaveLength(4);
  });

  test('contains nothing on the word of a member alone', async () => {
    const cluster = await convicted();
    const twisted: Record<string, (held: HeldEvidence) => unknown> = {
      'another key': (held) => ({
        ...held,
        signers: held.signers.map((each) => ({ ...each, publicKey: cluster.member(0).signer.key.publicKey })),
      }),
      'another member': (held) => ({
        ...held,
        signers: [{ ...held.signers[0], validatorId: 'validator-1' }],
      }),
      'another round': (held) => ({
        ...held,
        evidence: {
          ...held.evidence,
          first: { ...held.evidence.first, round: 4 },
          second: { ...held.evidence.second, round: 4 },
        },
      }),
      'one message twice': (held) => ({
        ...held,
        evidence: { ...held.evidence, second: held.evidence.first },
      }),
      'another network': (held) => ({ ...held, networkId: 'elsewhere' }),
      'no signer': (held) => ({ ...held, signers: [] }),
    };
    for (const [name, twist] of Object.entries(twisted)) {
      const deps = depsOf(cluster, 'validator-9', (_id, held) => held.map(twist) as HeldEvidence[]);
      expect((await collectEvidence(deps, registerId)).evidence, name).toEqual([]);
    }
  });

  test('is served for every existing register, and names the open proposal', async () => {
    const cluster = await convicted();
    await waitFor(() => cluster.member(0).register.state.ledger.proposals.length === 1);
    const app = createHttpServer({ runtime: testRuntime('validator'), title: 'Validator' });
    app.addHook('onRequest', async (request) => {
      request.caller = systemAdmin;
    });
    const deps = depsOf(cluster, 'validator-0');
    const { ledger } = cluster.member(0).register.state;
    mountEvidence(app, { ...deps, findRules: async (id) => (id === registerId ? ledger : undefined) });
    const at = (id: string) => app.inject(`/api/admin/validators/${id}/evidence`);
    const found = await at(registerId);
    expect(found.statusCode).toBe(200);
    expect(found.json().evidence).toMatchObject([
      { validatorId: 'validator-3', proposalId: ledger.proposals[0]?.proposalId },
    ]);
    for (const id of ['ff'.repeat(16), 'nonsense']) {
      const missing = await at(id);
      expect(missing.statusCode).toBe(404);
      expect(missing.json()).toMatchObject({ code: 'REGISTER_NOT_FOUND' });
    }
    await app.close();
  });

  test('is refused when it cannot be parsed', () => {
    const wire = (each: object) => create(ListEvidenceResponseSchema, { evidence: [each] });
    for (const each of [{}, { networkId: 'n', seenAtMs: -1n }, { evidence: {} }]) {
      expect(() => parseHeldEvidence(wire(each))).toThrow(AppError);
    }
  });
});
