import { z } from 'zod';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { approvalDigest, type Operation } from '#core/ledger/governance/operation.ts';
import type { Api } from '../harness/api.ts';
import {
  approvalOf,
  createOrganization,
  createPerson,
  type Governed,
  governed,
  type Person,
  signWithWallet,
} from '../harness/governance.ts';
import { createRegister, submitThroughRegister, waitConfirmed, waitOnline } from '../harness/journey.ts';

/** A register and an account that may read it. */
export interface GovernedRegister {
  readonly registerId: string;
  readonly owner: Person;
}

interface Scene {
  readonly api: Api;
  readonly register: Governed;
  readonly owner: Person;
  readonly second: Person;
  readonly third: Person;
  readonly fourth: Person;
}

const submitted = z.object({ txId: z.string(), proposalId: z.string().optional() });

/** Posts a change and waits until its transaction is sealed. The id of the proposal, if one was opened. */
async function change(scene: Scene, who: Person, path: string, json: object): Promise<string | undefined> {
  const { api, register } = scene;
  const answer = await api.expect([200, 202], 'POST', path, { token: who.token, json });
  const { txId, proposalId } = submitted.parse(answer.body);
  await waitConfirmed(api, who.token, register.registerId, txId);
  return proposalId;
}

async function seal({ api, register, owner }: Scene, n: number): Promise<void> {
  const { registerId } = register;
  const submission = { registerId, sender: owner.wallet.walletAddress, payload: { n } };
  await waitConfirmed(
    api,
    owner.token,
    registerId,
    await submitThroughRegister(api, owner.token, submission),
  );
}

/** Changes the validator set from four to three, to four and to three again; an Action is sealed by each of them. */
async function changeValidators(scene: Scene): Promise<void> {
  const { owner, register } = scene;
  const validator = (act: string) => `/api/validators/${register.registerId}/validator-3/${act}`;
  for (const [place, act] of ['suspend', 'approve', 'reject'].entries()) {
    await change(scene, owner, validator(act), {});
    await seal(scene, place);
  }
}

/** An operation of two people in one transaction: the approval of the second is included, signed with their wallet. */
async function addTogether({ api, register, owner, second, third }: Scene): Promise<void> {
  const { rosterHash } = await register.roster(owner);
  const operation: Operation = {
    operationType: 'add-member',
    proposerDid: owner.did,
    proposedAt: formatLedgerTimestamp(BigInt(Date.now()) * 1000n),
    targetDid: third.did,
    targetRole: 'Admin',
    targetKey: { publicKey: third.wallet.publicKey, algorithm: 'NISTP256' },
  };
  const facts = { registerId: register.registerId, approverDid: second.did, isApproval: true };
  const digest = approvalDigest({ ...facts, operation, rosterHashBefore: rosterHash });
  const signature = await signWithWallet(api, second, digest);
  const approvals = [{ approverDid: second.did, signature, isApproval: true, comment: 'together' }];
  const { proposerDid: _proposer, ...request } = operation;
  await register.decide(owner, { ...request, approvals, mode: 'direct' });
}

/** Three of three must agree: proposals that pass by a vote that another member submits, fail, or stay open. */
async function propose(scene: Scene): Promise<void> {
  const { api, register, owner, second, third, fourth } = scene;
  const opened = async (who: Person, request: object): Promise<string> => {
    const id = await register.decide(who, { ...request, mode: 'proposal' });
    if (id === undefined) throw new Error('no proposal was opened');
    return id;
  };
  const add = { operationType: 'add-member', targetDid: fourth.did, targetRole: 'Designer' };
  const first = await opened(second, add);
  const brought = await approvalOf(api, third, await register.ballot(owner, first));
  await register.cast(owner, first, { approvals: [brought] });
  await register.cast(owner, first, { decision: 'approve' });
  await register.waitStatus(owner, first, 'Recorded');
  const change = { operationType: 'change-role', targetDid: fourth.did, targetRole: 'Auditor' };
  const declined = await opened(third, change);
  await register.cast(owner, declined, { decision: 'reject', comment: 'no' });
  await register.waitStatus(owner, declined, 'Rejected');
  const transfer = await opened(owner, { operationType: 'transfer-ownership', targetDid: second.did });
  for (const who of [second, third]) await register.cast(who, transfer, { decision: 'approve' });
  await register.waitStatus(owner, transfer, 'Recorded');
  const open = await opened(owner, { operationType: 'remove-member', targetDid: fourth.did });
  await register.cast(third, open, { decision: 'approve' });
}

/**
 * Changes policies: alone while that suffices, by proposal afterwards; development mode is switched off by the
 * installation.
 */
async function changePolicies(scene: Scene, isAlone: boolean): Promise<void> {
  const { register, owner, second } = scene;
  const base = `/api/registers/${register.registerId}`;
  if (isAlone) {
    const policy = { consensus: { signatureThresholdMin: 2 }, later: { ratio: 0.5 } };
    await change(scene, owner, `${base}/policy/update`, { policy, updatedBy: owner.did });
    await change(scene, owner, `${base}/disable-dev-mode`, {});
    return;
  }
  for (const [path, json] of [
    ['governance/crypto-policy', { cryptoPolicy: { acceptedSignatureAlgorithms: ['ED25519', 'NISTP256'] } }],
    ['policy/update', { policy: { governance: { quorumFormula: 'supermajority' } } }],
  ] as const) {
    const id = await change(scene, second, `${base}/${path}`, { ...json, updatedBy: second.did });
    if (id === undefined) throw new Error(`${path} opened no proposal`);
    await register.cast(owner, id, { decision: 'approve' });
    await register.waitStatus(owner, id, 'Recorded');
  }
}

/** A register whose roster, validators and policies have a history; four validators at least. */
export async function createGovernedRegister(api: Api, root: string): Promise<GovernedRegister> {
  const organization = await createOrganization(api, root, 'governed');
  const create = (name: string, role: 'Administrator' | 'User', keyType = 'ED25519') =>
    createPerson(api, root, organization, { name, role, keyType });
  const owner = await create('owner', 'Administrator');
  const second = await create('second', 'Administrator');
  const third = await create('third', 'User', 'NISTP256');
  const fourth = await create('fourth', 'User');
  const request = { title: 'Governed', devMode: true };
  const registerId = await createRegister(api, owner.token, request, owner.wallet);
  await waitOnline(api, owner.token, registerId);
  const register = governed(api, registerId);
  const scene = { api, register, owner, second, third, fourth };
  await changeValidators(scene);
  await changePolicies(scene, true);
  await api.expect([200, 202], 'PUT', `/api/registers/${registerId}`, {
    token: owner.token,
    json: { title: 'Governed, ärger €', metadata: { made: 'by hand' } },
  });
  await register.decide(owner, { operationType: 'add-member', targetDid: second.did, targetRole: 'Admin' });
  await addTogether(scene);
  await changePolicies(scene, false);
  await propose(scene);
  await seal(scene, 3);
  return { registerId, owner };
}
