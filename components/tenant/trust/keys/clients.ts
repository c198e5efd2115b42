import { z } from 'zod';
import { isAppError } from '#core/errors/errors.ts';
import type { Endpoint } from '#kit/config/config.ts';
import { createServiceClient, type ServiceAnswer } from '#kit/http/http.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import { WalletService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { refusal } from '../../errors.ts';
import { type KeyOwner, type OrganizationKeys, organizationKeyOf } from './organization-keys.ts';

const timeoutMs = 5_000;
const answerLimitBytes = 16_384;
const retryAfterSeconds = 5;

const keySchema = z.object({
  publicKeySpki: z.base64(),
  boundKeySource: z.enum(['Primary', 'HaipCoKey', 'CoKey']),
});
const signedSchema = z.object({ signature: z.base64() });
const refusedSchema = z.object({ code: z.string() });

interface KeyClientOptions {
  readonly runtime: Runtime;
  readonly workload: Workload;
  readonly token: () => Promise<string>;
  readonly http: Endpoint;
  readonly grpc: Endpoint;
}

/** The wallet service, which starts after this one: both connections open with the first call. */
export function connectOrganizationKeys(options: KeyClientOptions): OrganizationKeys & { close(): void } {
  const { workload, token, http, grpc } = options;
  const expect = serviceSpiffeId(workload.trustDomain, 'service-wallet');
  const client = createServiceClient({ workload, address: http, expect, timeoutMs, answerLimitBytes });
  const wallets = createRpcClient(WalletService, { ...options, address: grpc, expect });
  return {
    findWallet: async (organizationId) => {
      const { wallet } = await wallets
        .findOrganizationWallet({ organizationId }, { timeoutMs })
        .catch(unavailable);
      return wallet?.walletAddress;
    },
    get: async ({ organizationId, walletAddress }, use) => {
      const path = `${pathOf(walletAddress)}?${new URLSearchParams({ use, organizationId })}`;
      const answer = await client.call({ method: 'GET', path, bearer: await token() }).catch(unavailable);
      const { publicKeySpki, boundKeySource } = accept(answer, keySchema);
      const source = boundKeySource === 'Primary' ? 'Primary' : 'HaipCoKey';
      return organizationKeyOf(Buffer.from(publicKeySpki, 'base64'), source);
    },
    sign: async ({ organizationId, walletAddress }, use, digest) => {
      const path = `${pathOf(walletAddress)}/sign`;
      const body = { use, organizationId, digest: Buffer.from(digest).toString('base64') };
      const answer = await client
        .call({ method: 'POST', path, bearer: await token(), body })
        .catch(unavailable);
      return Buffer.from(accept(answer, signedSchema).signature, 'base64');
    },
    close: () => {
      client.close();
      wallets.close();
    },
  };
}

const pathOf = (address: KeyOwner['walletAddress']) =>
  `/api/internal/wallets/${encodeURIComponent(address)}/issuer-cert-key`;

/** Anything but the expected answer or a known refusal is an outage: nothing is decided on it. */
function accept<S extends z.ZodType>({ status, body }: ServiceAnswer, schema: S): z.output<S> {
  if (status === 200) {
    const parsed = schema.safeParse(body);
    if (parsed.success) return parsed.data;
    throw refusal('WALLETS_UNAVAILABLE', { retryAfterSeconds, cause: parsed.error });
  }
  switch (refusedSchema.safeParse(body).data?.code) {
    case 'WALLET_NOT_FOUND':
    case 'WALLET_DELETED':
      throw refusal('WALLET_NOT_FOUND');
    case 'CERT_KEY_NOT_ELIGIBLE':
      throw refusal('CERT_KEY_NOT_ELIGIBLE');
    case 'WALLET_LOCKED':
      throw refusal('WALLET_LOCKED');
    default:
      throw refusal('WALLETS_UNAVAILABLE', { retryAfterSeconds });
  }
}

function unavailable(cause: unknown): never {
  if (isAppError(cause)) throw refusal('WALLETS_UNAVAILABLE', { cause, retryAfterSeconds });
  throw cause;
}
