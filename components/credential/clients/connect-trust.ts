import { z } from 'zod';
import { findSpkiKey, type SignatureKey } from '#core/crypto/signature-key.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { isAppError } from '#core/errors/errors.ts';
import { findCertificate, parseCertificate } from '#core/trust/certificate.ts';
import type { Endpoint } from '#kit/config/config.ts';
import { createServiceClient, type ServiceAnswer } from '#kit/http/http.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { IssuerChainService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { type GetAnchorsResponse, TrustListService } from '#protos/gen/chancery/tenant/v1/trust_lists_pb.js';
import { refusal } from '../errors.ts';
import type { AnchorList, TrustSources } from '../verifier/trust-sources/trust-sources.ts';
import type { PeerOptions } from './peer.ts';

interface Addresses {
  readonly CHANCERY_TENANT_GRPC: Endpoint;
  readonly CHANCERY_WALLET_HTTPS: Endpoint;
}

const keySchema = z.object({ publicKeySpki: z.string() });
const refusedSchema = z.object({ code: z.string() });
const timeoutMs = 5_000;
const retryAfterSeconds = 1;

/** What the tenant and the wallet service know of issuers; connects on the first call. */
export function connectTrust(addresses: Addresses, options: PeerOptions): TrustSources & { close(): void } {
  const { workload, token } = options;
  const authorities = createRpcClient(IssuerChainService, {
    ...options,
    address: addresses.CHANCERY_TENANT_GRPC,
    expect: serviceSpiffeId(workload.trustDomain, 'service-tenant'),
  });
  const lists = createRpcClient(TrustListService, {
    ...options,
    address: addresses.CHANCERY_TENANT_GRPC,
    expect: serviceSpiffeId(workload.trustDomain, 'service-tenant'),
  });
  const keys = createServiceClient({
    workload,
    address: addresses.CHANCERY_WALLET_HTTPS,
    expect: serviceSpiffeId(workload.trustDomain, 'service-wallet'),
    timeoutMs,
  });
  return {
    findTenantAnchor: async ({ der }) => {
      const found = await authorities.findIssuingAuthority({ certificate: der }).catch((cause: unknown) => {
        throw refusal('CERTIFICATES_UNAVAILABLE', { cause, retryAfterSeconds });
      });
      if (found.anchor.length === 0) return undefined;
      return { anchor: parseCertificate(found.anchor), verdict: found.revoked ? 'Revoked' : 'Good' };
    },
    findTrustList: async (trustListId) => {
      try {
        return listOf(await lists.getAnchors({ trustListId }));
      } catch (cause) {
        if (isAppError(cause, 'not_found') || isAppError(cause, 'invalid')) return undefined;
        throw refusal('CERTIFICATES_UNAVAILABLE', { cause, retryAfterSeconds });
      }
    },
    findListedIssuers: async ({ der }) => {
      const { issuers } = await lists.findIssuers({ certificate: der }).catch((cause: unknown) => {
        throw refusal('CERTIFICATES_UNAVAILABLE', { cause, retryAfterSeconds });
      });
      return issuers.map(({ trustListId, sequenceNumber, anchors }) => ({
        trustListId,
        sequenceNumber: Number(sequenceNumber),
        anchors: anchors.flatMap((root) => findCertificate(root) ?? []),
      }));
    },
    findOrganizationKey: async (walletAddress) => {
      const path = `/api/internal/wallets/${encodeURIComponent(walletAddress)}/issuer-cert-key`;
      const answer = await keys
        .call({ method: 'GET', path, bearer: await token() })
        .catch((cause: unknown) => {
          throw refusal('WALLETS_UNAVAILABLE', { cause, retryAfterSeconds });
        });
      return organizationKeyOf(answer);
    },
    close: () => {
      authorities.close();
      lists.close();
      keys.close();
    },
  };
}

const withoutKey = ['WALLET_NOT_FOUND', 'WALLET_DELETED', 'WALLET_LOCKED', 'CERT_KEY_NOT_ELIGIBLE'];

/**
 * The key in an answer of the wallet service; undefined where the service says that there is none. No verdict is made of
 * any other answer.
 * @throws AppError unavailable WALLETS_UNAVAILABLE
 */
export function organizationKeyOf({
  status,
  body,
}: Pick<ServiceAnswer, 'status' | 'body'>): SignatureKey | undefined {
  const key = keySchema.safeParse(body);
  if (status === 200 && key.success) return findSpkiKey(decodeBase64Any(key.data.publicKeySpki));
  const { code = '' } = refusedSchema.safeParse(body).data ?? {};
  if (withoutKey.includes(code)) return undefined;
  throw refusal('WALLETS_UNAVAILABLE', { retryAfterSeconds });
}

/** The tenant service judges freshness; the time of the next update repeats its judgement. */
function listOf({ sequenceNumber, roots, stale, strict }: GetAnchorsResponse): AnchorList {
  const snapshot = {
    sequenceNumber: Number(sequenceNumber),
    // A root that cannot be read vouches for none.
    anchors: roots.flatMap((der) => findCertificate(der) ?? []),
    issuedAtMs: 0,
    nextUpdateMs: stale ? 0 : Number.MAX_SAFE_INTEGER,
  };
  return { snapshot, isStrict: strict };
}
