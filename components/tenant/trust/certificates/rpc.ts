import { AppError, genericCode } from '#core/errors/errors.ts';
import { clientIdOf } from '#core/identity/services.ts';
import type { RpcHandlers, RpcPeer } from '#kit/rpc/rpc.ts';
import { CertificateProvenance, type IssuerChainService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { walletParams } from '../requests/params.ts';
import { getIssuerChain } from './chain.ts';
import type { JudgeDeps } from './judge.ts';
import { findIssued, type Provenance } from './store.ts';

const mostCertificateBytes = 16_384;

/** Only the credential service signs with the keys of organisations. */
export function mayReadChains(peer: RpcPeer): boolean {
  return peer.clientId === clientIdOf('credential');
}

export function issuerChainRpc(deps: JudgeDeps): RpcHandlers<(typeof IssuerChainService)['method']> {
  return {
    getIssuerChain: async ({ organizationId, walletAddress, provenance, mayBeRetired }) => {
      const parsed = walletParams.safeParse({ tenantId: organizationId, orgWalletAddress: walletAddress });
      const kind = provenanceOf(provenance);
      if (!parsed.success || kind === undefined)
        throw new AppError(
          'invalid',
          genericCode('invalid'),
          'the request names no wallet of an organisation',
        );
      const { tenantId, orgWalletAddress } = parsed.data;
      const owner = { organizationId: tenantId, walletAddress: orgWalletAddress };
      const code = kind === 'Internal' ? 'CERT_NOT_ENROLLED' : 'CERT_EXTERNAL_ANCHOR_UNAVAILABLE';
      return { chain: [...(await getIssuerChain(deps, owner, { provenance: kind, mayBeRetired, code }))] };
    },
    findIssuingAuthority: async ({ certificate }) => {
      const isCertificate = certificate.length > 0 && certificate.length <= mostCertificateBytes;
      const issued = isCertificate ? await findIssued(deps.db.read, certificate) : undefined;
      return { anchor: issued?.root ?? new Uint8Array(), revoked: issued?.isRevoked ?? false };
    },
  };
}

function provenanceOf(provenance: CertificateProvenance): Provenance | undefined {
  if (provenance === CertificateProvenance.INTERNAL) return 'Internal';
  return provenance === CertificateProvenance.IMPORTED ? 'Imported' : undefined;
}
