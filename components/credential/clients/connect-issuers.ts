import { z } from 'zod';
import { decodeBase64Any, encodeBase64 } from '#core/encoding/base64.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Endpoint } from '#kit/config/config.ts';
import { createServiceClient } from '#kit/http/http.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { CertificateProvenance, IssuerChainService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { WalletService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { refusal } from '../errors.ts';
import type { Issuers } from '../issuer/signing/issuers.ts';
import type { PeerOptions } from './peer.ts';

interface Addresses {
  readonly CHANCERY_TENANT_GRPC: Endpoint;
  readonly CHANCERY_WALLET_GRPC: Endpoint;
  readonly CHANCERY_WALLET_HTTPS: Endpoint;
}

const signTimeoutMs = 5_000;
const retryAfterSeconds = 1;

const signedSchema = z.object({ signature: z.string() });
const refusedSchema = z.object({ code: z.string() });

/** The tenant and the wallet service; connects on the first call. */
export function connectIssuers(addresses: Addresses, options: PeerOptions): Issuers & { close(): void } {
  const { workload, token } = options;
  const idOf = (service: string) => serviceSpiffeId(workload.trustDomain, service);
  const chains = createRpcClient(IssuerChainService, {
    ...options,
    address: addresses.CHANCERY_TENANT_GRPC,
    expect: idOf('service-tenant'),
  });
  const wallets = createRpcClient(WalletService, {
    ...options,
    address: addresses.CHANCERY_WALLET_GRPC,
    expect: idOf('service-wallet'),
  });
  const keys = createServiceClient({
    workload,
    address: addresses.CHANCERY_WALLET_HTTPS,
    expect: idOf('service-wallet'),
    timeoutMs: signTimeoutMs,
  });
  return {
    chainOf: async ({ organizationId, walletAddress, trustAnchor }, use) => {
      if (trustAnchor === 'register') {
        const { wallet } = await wallets.findOrganizationWallet({ organizationId }).catch(walletsUnavailable);
        if (wallet?.walletAddress !== walletAddress) throw refusal('ISSUER_WALLET_MISMATCH');
        return [];
      }
      const provenance =
        trustAnchor === 'x509-lotl' ? CertificateProvenance.IMPORTED : CertificateProvenance.INTERNAL;
      const mayBeRetired = use === 'Statuses';
      const request = { organizationId, walletAddress, provenance, mayBeRetired };
      const { chain } = await chains.getIssuerChain(request).catch(certificatesUnavailable);
      if (chain.length === 0) throw refusal('CERTIFICATES_UNAVAILABLE');
      return chain;
    },
    sign: async (walletAddress, digest) => {
      const answer = await keys
        .call({
          method: 'POST',
          path: `/api/internal/wallets/${encodeURIComponent(walletAddress)}/issuer-cert-key/sign`,
          bearer: await token(),
          body: { digest: encodeBase64(digest) },
        })
        .catch(walletsUnavailable);
      const signed = signedSchema.safeParse(answer.body);
      if (answer.status === 200 && signed.success) return decodeBase64Any(signed.data.signature);
      throw signingRefusal(answer.body);
    },
    close: () => {
      chains.close();
      wallets.close();
      keys.close();
    },
  };
}

const ofKeys = ['CERT_KEY_NOT_ELIGIBLE', 'WALLET_LOCKED'] as const;

function signingRefusal(body: unknown): Error {
  const { code } = refusedSchema.safeParse(body).data ?? {};
  const known = ofKeys.find((one) => one === code);
  if (known !== undefined) return refusal(known);
  if (code === 'WALLET_NOT_FOUND' || code === 'WALLET_DELETED') return refusal('ISSUER_WALLET_MISMATCH');
  return refusal('WALLETS_UNAVAILABLE', { retryAfterSeconds });
}

function walletsUnavailable(cause: unknown): never {
  throw refusal('WALLETS_UNAVAILABLE', { cause, retryAfterSeconds });
}

const ofCertificates = [
  'CERT_NOT_ENROLLED',
  'CERT_EXTERNAL_ANCHOR_UNAVAILABLE',
  'CERT_KEY_NOT_ELIGIBLE',
  'CERT_KEY_MISMATCH',
] as const;

function certificatesUnavailable(cause: unknown): never {
  const code = isAppError(cause) ? ofCertificates.find((one) => one === cause.code) : undefined;
  throw refusal(code ?? 'CERTIFICATES_UNAVAILABLE', {
    cause,
    ...(code === undefined && { retryAfterSeconds }),
  });
}
