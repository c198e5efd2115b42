import { expect } from 'vitest';
import { z } from 'zod';
import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { quorum, type ValidatorMember, validatorSetHash } from '#core/ledger/consensus.ts';
import { memberDid } from '#core/ledger/did.ts';
import { activeMembers } from '#core/ledger/governance/rules.ts';
import type { Answer, Api } from '../harness/api.ts';
import { checkEvidence, collectEvidence, fetchDockets, replayRules } from '../harness/evidence.ts';
import {
  createRegister,
  submitThroughRegister,
  type Wallet,
  waitConfirmed,
  waitOnline,
} from '../harness/journey.ts';
import { setStatus } from '../harness/validation.ts';
import { until } from '../harness/wait.ts';

/** The shortest time to live that a policy can have: it is the grace, too. */
const graceSeconds = 10;

export type TransitionMode = 'immediate' | 'grace-period';

/** A register of this journey and who governs it. */
export interface OpenRegister {
  readonly api: Api;
  readonly token: string;
  readonly owner: Wallet;
  readonly registerId: string;
}

const submitted = z.object({ txId: z.string() });
const placed = z.object({ docketNumber: z.number() });
const listed = z.object({
  validators: z.array(
    z.object({
      validatorId: z.string(),
      publicKey: z.string(),
      algorithm: z.string(),
      status: z.string(),
      effectiveFromDocket: z.number(),
      ejectAt: z.string().optional(),
    }),
  ),
});

/** A register that any validator may join without anybody's approval. */
export async function openRegister(api: Api, token: string, owner: Wallet): Promise<OpenRegister> {
  const validators = { registrationMode: 'public', operationalTtlSeconds: graceSeconds };
  const wish = { title: 'Open to all validators', policy: { validators } };
  const registerId = await createRegister(api, token, wish, owner);
  await waitOnline(api, token, registerId);
  return { api, token, owner, registerId };
}

async function docketOf({ api, token, registerId }: OpenRegister, txId: string): Promise<number> {
  await waitConfirmed(api, token, registerId, txId);
  const found = await api.expect(200, 'GET', `/api/registers/${registerId}/transactions/${txId}`, { token });
  return placed.parse(found.body).docketNumber;
}

export function sealedIn(here: OpenRegister, answer: Answer): Promise<number> {
  expect([answer.status, answer.body]).toMatchObject([202, {}]);
  return docketOf(here, submitted.parse(answer.body).txId);
}

/** Seals one more Action; the number of its docket. */
export async function sealAction(here: OpenRegister, payload: object): Promise<number> {
  const { api, token, owner, registerId } = here;
  const sender = owner.walletAddress;
  return docketOf(here, await submitThroughRegister(api, token, { registerId, sender, payload }));
}

export async function validatorsOf({ api, token, registerId }: OpenRegister) {
  return listed.parse((await api.expect(200, 'GET', `/api/validators/${registerId}`, { token })).body)
    .validators;
}

/** Changes the register from public to consent; the docket that brings the policy. */
async function close(here: OpenRegister, transitionMode: TransitionMode): Promise<number> {
  const { api, token, owner, registerId } = here;
  const path = `/api/registers/${registerId}/policy/update`;
  const policy = { validators: { registrationMode: 'consent' } };
  const json = { policy, updatedBy: memberDid(owner.walletAddress) };
  expect((await api.send('POST', path, { token, json })).status).toBe(400);
  return sealedIn(here, await api.send('POST', path, { token, json: { ...json, transitionMode } }));
}

/**
 * A validator joins a public register by itself, the register is closed, and the one that nobody approved leaves it at
 * the first docket that is not earlier than the end of the transition; the set goes on sealing without it.
 */
export async function ejectTheUnapproved(
  here: OpenRegister,
  joiner: string,
  transitionMode: TransitionMode,
): Promise<void> {
  const { api, token, registerId } = here;
  const genesis = (await validatorsOf(here)).map(({ validatorId }) => validatorId);
  expect(genesis).not.toContain(joiner);
  const register = () =>
    api.send('POST', '/api/validators/register', { token, json: { registerId, validatorId: joiner } });
  const joined = await register();
  expect(joined.body).toMatchObject({ status: 'active' });
  const joinedIn = await sealedIn(here, joined);
  await sealAction(here, { with: joiner });
  const closedIn = await close(here, transitionMode);
  const [waiting] = (await validatorsOf(here)).filter(({ ejectAt }) => ejectAt !== undefined);
  expect(waiting).toMatchObject({ validatorId: joiner, status: 'active' });
  const ejectAtMs = Date.parse(waiting?.ejectAt ?? '');

  let count = 0;
  await until('it has left', 60_000, async () => {
    count += 1;
    await sealAction(here, { count });
    const { members } = await setStatus(api, token, registerId);
    return members.length === genesis.length ? true : undefined;
  });
  await sealAction(here, { without: joiner });

  const dockets = await fetchDockets(api, token, `/api/registers/${registerId}`);
  const sealedAtMs = (number: number) => Date.parse(dockets[number]?.timestamp ?? '');
  expect(ejectAtMs - sealedAtMs(closedIn)).toBe(transitionMode === 'immediate' ? 0 : graceSeconds * 1_000);
  const ejecting = dockets.find(
    ({ docketNumber }) => docketNumber > closedIn && sealedAtMs(docketNumber) >= ejectAtMs,
  );
  const left = (ejecting?.docketNumber ?? Number.NaN) + 1;
  expect(left).toBeGreaterThan(closedIn + 1);
  expect(dockets.length).toBeGreaterThan(left);
  const all = await validatorsOf(here);
  const keys = all.flatMap(({ validatorId, publicKey, algorithm }): ValidatorMember[] =>
    isAlgorithm(algorithm) ? [{ validatorId, publicKey, algorithm }] : [],
  );
  for (const { docketNumber, validatorSetHash: hash, certificate } of dockets) {
    const isIn = docketNumber > joinedIn && docketNumber < left;
    const members = keys.filter(({ validatorId }) => validatorId !== joiner || isIn);
    expect(hash, `docket ${docketNumber}`).toBe(validatorSetHash(members));
    expect(certificate.signatures.length).toBeGreaterThanOrEqual(quorum(members.length, 1));
    const voters = certificate.signatures.map(({ validatorId }) => validatorId);
    if (!isIn) expect(voters, `docket ${docketNumber}`).not.toContain(joiner);
  }
  const one = all.find(({ validatorId }) => validatorId === joiner);
  expect(one).toMatchObject({ status: 'removed', effectiveFromDocket: left });
  const status = await setStatus(api, token, registerId);
  expect([status.status, status.quorum]).toEqual(['Running', quorum(genesis.length, 1)]);
  expect((await register()).body).toMatchObject({ code: 'VAL_PERM_017' });
  const evidence = await collectEvidence(api, token, registerId);
  checkEvidence(evidence);
  expect(activeMembers(replayRules(evidence)).map(({ validatorId }) => validatorId)).toEqual(genesis);
}
