import { z } from 'zod';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { memberDid } from '#core/ledger/did.ts';
import { governanceDraft } from '#core/ledger/governance/build.ts';
import type { Approval } from '#core/ledger/governance/operation.ts';
import { ROSTER_ROLES } from '#core/ledger/owner-attestation.ts';
import { boundTxId, payloadHash, signingDigest } from '#core/ledger/transaction.ts';
import type { Answer, Api } from './api.ts';
import { createWallet, type Wallet, waitConfirmed } from './journey.ts';
import { until } from './wait.ts';

/** A person with an account, a wallet, and the DID of the wallet's key. */
export interface Person {
  readonly email: string;
  readonly password: string;
  readonly token: string;
  readonly wallet: Wallet;
  readonly did: string;
}

const organization = z.object({ id: z.string(), subdomain: z.string() });
const signedIn = z.object({ access_token: z.string() });
const signAnswer = z.object({ signature: z.string() });
const member = z.object({
  did: z.string(),
  role: z.enum(ROSTER_ROLES),
  votes: z.boolean(),
  grantedAt: z.string(),
  publicKey: z.string(),
  algorithm: z.enum(ALGORITHMS),
});
const roster = z.object({
  members: z.array(member),
  rosterVersion: z.number(),
  rosterHash: z.string(),
  controlTransactionCount: z.number(),
  quorum: z.object({
    formula: z.string(),
    voters: z.number(),
    required: z.number(),
    ownerCanBypass: z.boolean(),
  }),
});
const accepted = z.object({
  txId: z.string(),
  status: z.literal('submitted'),
  requiresGovernanceVote: z.boolean(),
  proposalId: z.string().optional(),
});
const ballot = z.object({
  status: z.string(),
  votesReceived: z.number(),
  votesRequired: z.number(),
  rosterChanged: z.boolean(),
  dataToSign: z.array(z.object({ approverDid: z.string(), approve: z.string(), reject: z.string() })),
});

export type Roster = z.output<typeof roster>;
export type Ballot = z.output<typeof ballot>;

/** An organisation that the seeded administrator creates. */
export async function createOrganization(
  api: Api,
  root: string,
  name: string,
): Promise<z.output<typeof organization>> {
  const subdomain = `${name}-${Date.now().toString(36)}`;
  const made = await api.expect(201, 'POST', '/api/organizations', {
    token: root,
    json: { name, subdomain },
  });
  return organization.parse({ subdomain, ...(made.body as object) });
}

/** Creates a person of an organisation, signed in, with a wallet of their own. */
export async function createPerson(
  api: Api,
  root: string,
  of: z.output<typeof organization>,
  person: {
    readonly name: string;
    readonly role: 'SystemAdmin' | 'Administrator' | 'Auditor' | 'User';
    readonly keyType?: string;
  },
): Promise<Person> {
  const email = `${person.name}@${of.subdomain}.example`;
  const password = 'a long enough phrase 42';
  await api.expect(201, 'POST', `/api/organizations/${of.id}/users`, {
    token: root,
    json: { email, password, displayName: person.name, roles: [person.role] },
  });
  const answer = await api.expect(200, 'POST', '/api/auth/login', {
    json: { email, password, organizationSubdomain: of.subdomain },
  });
  const token = signedIn.parse(answer.body).access_token;
  const wallet = await createWallet(api, token, person.keyType ?? 'ED25519');
  return { email, password, token, wallet, did: memberDid(wallet.walletAddress) };
}

/** Signs 32 bytes, given as hex, with a person's own wallet. Standard base64. */
export async function signWithWallet(api: Api, person: Person, digestHex: string): Promise<string> {
  const { id, algorithm } = person.wallet;
  const answer = await api.expect(200, 'POST', `/api/wallets/${id}/sign`, {
    token: person.token,
    json: { data: Buffer.from(digestHex, 'hex').toString('base64'), algorithm, isPreHashed: true },
  });
  return signAnswer.parse(answer.body).signature;
}

/** A vote on an open proposal that the approver signs with their own wallet, for another member to submit. */
export async function approvalOf(
  api: Api,
  approver: Person,
  shown: Ballot,
  isApproval = true,
): Promise<Approval> {
  const own = shown.dataToSign.find(({ approverDid }) => approverDid === approver.did);
  if (own === undefined) throw new Error(`${approver.did} has nothing to sign`);
  const signature = await signWithWallet(api, approver, isApproval ? own.approve : own.reject);
  return { approverDid: approver.did, signature, isApproval };
}

/** A register's governance through the gateway. */
export interface Governed {
  readonly registerId: string;
  get(path: string, who: Person): Promise<Answer>;
  propose(who: Person, request: object): Promise<Answer>;
  /**
   * Proposes, expects acceptance and waits until the transaction is sealed. Returns the id of the proposal, if one was
   * opened.
   */
  decide(who: Person, request: object): Promise<string | undefined>;
  vote(who: Person, proposalId: string, body: object): Promise<Answer>;
  /** Votes and waits until the vote is sealed. */
  cast(who: Person, proposalId: string, body: object): Promise<void>;
  roster(who: Person): Promise<Roster>;
  /** Roles by DID. */
  roles(who: Person): Promise<Readonly<Record<string, string>>>;
  ballot(who: Person, proposalId: string): Promise<Ballot>;
  /** Waits until a proposal has a status. */
  waitStatus(who: Person, proposalId: string, status: string): Promise<void>;
  /** Submits a governance transaction that its sender signed with their wallet. */
  send(
    who: Person,
    actionId: string,
    payload: object,
    facts?: Readonly<Record<string, string>>,
  ): Promise<Answer>;
}

/** The governance of one register. */
export function governed(api: Api, registerId: string): Governed {
  const base = `/api/registers/${registerId}/governance`;
  const get: Governed['get'] = (path, { token }) => api.send('GET', `${base}${path}`, { token });
  const read = async <T>(path: string, { token }: Person, shape: z.ZodType<T>): Promise<T> =>
    shape.parse((await api.expect(200, 'GET', `${base}${path}`, { token })).body);
  const propose: Governed['propose'] = ({ token }, json) =>
    api.send('POST', `${base}/propose`, { token, json });
  const ballotOf: Governed['ballot'] = (who, id) => read(`/proposals/${id}`, who, ballot);
  const rosterOf: Governed['roster'] = (who) => read('/roster', who, roster);
  return {
    registerId,
    get,
    propose,
    roster: rosterOf,
    ballot: ballotOf,
    decide: async ({ token }, json) => {
      const answer = await api.expect(202, 'POST', `${base}/propose`, { token, json });
      const { txId, proposalId } = accepted.parse(answer.body);
      await waitConfirmed(api, token, registerId, txId);
      return proposalId;
    },
    vote: ({ token }, id, json) => api.send('POST', `${base}/proposals/${id}/approvals`, { token, json }),
    cast: async ({ token }, id, json) => {
      const answer = await api.expect(202, 'POST', `${base}/proposals/${id}/approvals`, { token, json });
      await waitConfirmed(api, token, registerId, z.object({ txId: z.string() }).parse(answer.body).txId);
    },
    roles: async (who) =>
      Object.fromEntries((await rosterOf(who)).members.map(({ did, role }) => [did, role])),
    waitStatus: async (who, id, status) => {
      await until(`proposal ${id} is ${status}`, 20_000, async () =>
        (await ballotOf(who, id)).status === status ? true : undefined,
      );
    },
    send: async (who, actionId, payload, facts = {}) => {
      const transaction = await signGovernance(
        api,
        who,
        registerId,
        governanceDraft(actionId, payload, facts),
      );
      return api.send('POST', `${base}/propose`, { token: who.token, json: { transaction } });
    },
  };
}

async function signGovernance(
  api: Api,
  who: Person,
  registerId: string,
  draft: ReturnType<typeof governanceDraft>,
): Promise<object> {
  const { publicKey, algorithm } = who.wallet;
  const { blueprintId, actionId, metadata, payload } = draft;
  const createdAt = formatLedgerTimestamp(BigInt(Date.now()) * 1000n);
  const hash = payloadHash(payload);
  const envelope = { registerId, blueprintId, actionId, metadata, payloadHash: hash, createdAt };
  const transactionId = boundTxId({ ...envelope, type: 'Control' }, [publicKey]);
  const digest = Buffer.from(signingDigest(transactionId, hash)).toString('hex');
  const signatureValue = await signWithWallet(api, who, digest);
  const signatures = [{ publicKey, algorithm, signatureValue }];
  return { transactionId, actionId, payload, createdAt, metadata, signatures };
}
