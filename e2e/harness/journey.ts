import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Api } from './api.ts';
import type { LocalState } from './system.ts';
import { until } from './wait.ts';

const tokenAnswer = z.object({ access_token: z.string(), refresh_token: z.string(), expires_in: z.number() });
const walletAnswer = z.object({
  id: z.string(),
  walletAddress: z.string(),
  publicKey: z.string(),
  algorithm: z.string(),
});
const initiateAnswer = z.object({
  id: z.string(),
  nonce: z.string(),
  attestationsToSign: z.array(
    z.object({
      walletAddress: z.string(),
      attestationData: z.record(z.string(), z.unknown()),
      dataToSign: z.string(),
    }),
  ),
});
const signAnswer = z.object({ signature: z.string(), publicKey: z.string(), algorithm: z.string() });
const submitAnswer = z.object({ transactionId: z.string(), status: z.string(), timestamp: z.string() });

export type Wallet = z.output<typeof walletAnswer>;
export type Tokens = z.output<typeof tokenAnswer>;

/** Signs the seeded administrator in by the password grant. */
export async function signIn(
  api: Api,
  state: Pick<LocalState, 'adminEmail' | 'adminPasswordFile'>,
): Promise<Tokens> {
  const password = readFileSync(state.adminPasswordFile, 'utf8').trim();
  const answer = await api.expect(200, 'POST', '/api/service-auth/token', {
    form: { grant_type: 'password', username: state.adminEmail, password },
  });
  return tokenAnswer.parse(answer.body);
}

export async function createWallet(api: Api, token: string, keyType: string): Promise<Wallet> {
  const answer = await api.expect(201, 'POST', '/api/wallets', {
    token,
    json: { title: `A ${keyType} wallet`, keyType },
  });
  return walletAnswer.parse(answer.body);
}

/** Settings of a new register, besides its owner. */
export interface RegisterSpec {
  readonly title: string;
  readonly devMode?: boolean;
  readonly policy?: object;
}

/** Initiates a register, signs its attestations with the wallet service, finalizes it. */
export async function createRegister(
  api: Api,
  token: string,
  spec: string | RegisterSpec,
  owner: Wallet,
): Promise<string> {
  const initiated = await api.expect(201, 'POST', '/api/registers/initiate', {
    token,
    json: {
      description: 'Made by a journey',
      owners: [{ walletAddress: owner.walletAddress }],
      ...(typeof spec === 'string' ? { title: spec } : spec),
    },
  });
  const { id, nonce, attestationsToSign } = initiateAnswer.parse(initiated.body);
  const signedAttestations = [];
  for (const { attestationData, dataToSign } of attestationsToSign) {
    const signed = await api.expect(200, 'POST', `/api/wallets/${owner.id}/sign`, {
      token,
      json: {
        data: Buffer.from(dataToSign, 'hex').toString('base64'),
        algorithm: owner.algorithm,
        isPreHashed: true,
      },
    });
    signedAttestations.push({ attestationData, ...signAnswer.parse(signed.body) });
  }
  await api.expect(200, 'POST', '/api/registers/finalize', {
    token,
    json: { registerId: id, nonce, signedAttestations },
  });
  return id;
}

/** Waits until docket 0 is sealed and stored. */
export async function waitOnline(api: Api, token: string, registerId: string): Promise<void> {
  await until(`genesis of ${registerId}`, 15_000, async () => {
    const answer = await api.send('GET', `/api/registers/${registerId}/dockets/0`, { token });
    return answer.status === 200 ? true : undefined;
  });
}

export interface RestSubmission {
  readonly registerId: string;
  readonly sender: string;
  readonly payload: unknown;
}

/** Submits through the register service, for which the wallet service signs as the caller. */
export async function submitThroughRegister(
  api: Api,
  token: string,
  submission: RestSubmission,
): Promise<string> {
  const { registerId, sender, payload } = submission;
  const answer = await api.expect(202, 'POST', `/api/registers/${registerId}/transactions`, {
    token,
    json: {
      transactionType: 'Action',
      senderAddress: sender,
      payload: Buffer.from(JSON.stringify(payload)).toString('base64'),
      metadata: { blueprintId: 'demo', actionId: '1' },
    },
  });
  return submitAnswer.parse(answer.body).transactionId;
}

const countAnswer = z.object({ totalCount: z.number() });

/** Waits until the register has `count` sealed transactions. */
export async function waitCount(api: Api, token: string, registerId: string, count: number): Promise<void> {
  await until(`${count} confirmed transactions`, 30_000, async () => {
    const path = `/api/registers/${registerId}/transactions?pageSize=1`;
    const answer = await api.expect(200, 'GET', path, { token });
    return countAnswer.parse(answer.body).totalCount >= count ? true : undefined;
  });
}

const statusAnswer = z.object({ status: z.string() });

/** Waits until one transaction is confirmed. */
export async function waitConfirmed(
  api: Api,
  token: string,
  registerId: string,
  txId: string,
): Promise<void> {
  await until(`transaction ${txId}`, 30_000, async () => {
    const answer = await api.expect([200, 404], 'GET', `/api/registers/${registerId}/transactions/${txId}`, {
      token,
    });
    const found = answer.status === 200 ? statusAnswer.parse(answer.body).status : 'unknown';
    return found === 'confirmed' ? true : undefined;
  });
}
