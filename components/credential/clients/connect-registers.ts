import { z } from 'zod';
import { encodeBase64 } from '#core/encoding/base64.ts';
import type { Endpoint } from '#kit/config/config.ts';
import { createServiceClient } from '#kit/http/http.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { refusal } from '../errors.ts';
import type { Registers } from '../ledger/registers.ts';
import type { PeerOptions } from './peer.ts';

const timeoutMs = 10_000;
const retryAfterSeconds = 1;

const stateSchema = z.object({ status: z.enum(['confirmed', 'pending', 'rejected', 'expired']) });
const refusedSchema = z.object({ code: z.string() });

const states = { confirmed: 'sealed', pending: 'pending', rejected: 'refused', expired: 'refused' } as const;

/** The register service over HTTP; it connects on the first call. */
export function connectRegisters(
  address: Endpoint,
  { workload, token }: PeerOptions,
): Registers & { close(): void } {
  const expect = serviceSpiffeId(workload.trustDomain, 'service-register');
  const client = createServiceClient({ workload, address, expect, timeoutMs });
  const call = async (method: 'GET' | 'POST', path: string, body?: object) => {
    const answer = await client
      .call({ method, path, bearer: await token(), ...(body !== undefined && { body }) })
      .catch(unavailable);
    if (answer.status >= 500 || answer.status === 429) unavailable(new Error(`status ${answer.status}`));
    return answer;
  };
  return {
    exists: async (registerId) => (await call('GET', `/api/registers/${registerId}`)).status === 200,
    stateOf: async (registerId, transactionId) => {
      const { status, body } = await call(
        'GET',
        `/api/registers/${registerId}/transactions/${transactionId}`,
      );
      if (status === 404) return 'unknown';
      const found = stateSchema.safeParse(body);
      if (status !== 200 || !found.success) return unavailable(new Error(`status ${status}`));
      return states[found.data.status];
    },
    submit: async ({
      registerId,
      type,
      metadata,
      payloadHash,
      createdAt,
      id,
      payload,
      signature,
      sender,
    }) => {
      const { status, body } = await call('POST', `/api/registers/${registerId}/transactions`, {
        transactionType: type,
        senderAddress: sender,
        payload: encodeBase64(Buffer.from(payload)),
        metadata,
        transactionId: id,
        payloadHash,
        createdAt,
        signatures: [signature],
      });
      if (status < 300) return undefined;
      return refusedSchema.safeParse(body).data?.code ?? `status ${status}`;
    },
    close: () => client.close(),
  };
}

function unavailable(cause: unknown): never {
  throw refusal('REGISTERS_UNAVAILABLE', { cause, retryAfterSeconds });
}
