import type { Pool } from 'undici';
import { walletAddress } from '#core/crypto/address.ts';
import { post, presign } from './load.ts';
import { startRawInstallation } from './raw/installation.ts';
import type { Row } from './report.ts';
import { type Installation, rawSettings, type Stage } from './stage.ts';

/** The first half warms both programs up and is not counted. */
const samples = 400;

interface LatencyRow {
  readonly measure: string;
  readonly atMost: number;
}

/** One transaction at a time on an idle system, submit to confirmed, at the register service's listener. */
async function submitToConfirmed(stage: Stage, name: string, row: LatencyRow): Promise<Row> {
  const validators = stage.validatorUrls().length;
  const raw = await startRawInstallation({
    ...rawSettings(stage, name, validators),
    workers: 1,
    storeWorkers: 1,
  });
  const registerUrl = stage.addressOf('register', 'HTTPS');
  const pools = { ours: stage.pool(registerUrl, 1), raw: stage.pool(raw.storeUrl, 1) };
  const figures = { ours: [] as number[], raw: [] as number[] };
  for (const text of presign(stage.registerId, samples)) {
    figures.ours.push(await confirmationMs(stage, pools.ours, text));
    figures.raw.push(await timed(() => post(pools.raw, '/', stage.token, text)));
  }
  await Promise.all(Object.values(pools).map((pool) => pool.close()));
  await raw.stop();
  return {
    measure: row.measure,
    ours: figures.ours.slice(samples / 2),
    raw: figures.raw.slice(samples / 2),
    unit: 'ms',
    bound: { kind: 'multiple', atMost: row.atMost },
  };
}

export function latency(stage: Stage): Promise<Row> {
  return submitToConfirmed(stage, 'latency', { measure: 'submit to confirmed, idle, p50', atMost: 2.5 });
}

export function latencyOfFour(stage: Stage): Promise<Row> {
  const measure = 'four validators: submit to confirmed, idle, p50';
  return submitToConfirmed(stage, 'latency_four', { measure, atMost: 2.2 });
}

/** Submits to the register service and waits until the transaction is confirmed; the answer. */
export function postConfirmed(installation: Installation, register: Pool, body: string): Promise<string> {
  const { registerId, token } = installation;
  return post(register, `/api/registers/${registerId}/transactions?wait=confirmed&timeout=10`, token, body);
}

/** Milliseconds from the submission of a transaction until it is confirmed. */
export function confirmationMs(
  installation: Installation,
  register: Pool,
  submission: string,
): Promise<number> {
  const body = restSubmission(submission);
  return timed(() => postConfirmed(installation, register, body));
}

/** Builds the submission for the register service from one for a validator. */
export function restSubmission(text: string): string {
  const submission = JSON.parse(text);
  const [signature] = submission.Signatures;
  return JSON.stringify({
    transactionType: 'Action',
    senderAddress: walletAddress('ED25519', Buffer.from(signature.PublicKey, 'base64')),
    payload: Buffer.from(JSON.stringify(submission.Payload)).toString('base64'),
    transactionId: submission.TransactionId,
    payloadHash: submission.PayloadHash,
    createdAt: submission.CreatedAt,
    metadata: {
      ...submission.Metadata,
      blueprintId: submission.BlueprintId,
      actionId: submission.ActionId,
    },
    signatures: [
      {
        publicKey: signature.PublicKey,
        signatureValue: signature.SignatureValue,
        algorithm: signature.Algorithm,
      },
    ],
  });
}

export async function timed(act: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await act();
  return performance.now() - startedAt;
}
