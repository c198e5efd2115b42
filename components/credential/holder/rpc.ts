import type { RpcHandlers, RpcPeer } from '#kit/rpc/rpc.ts';
import {
  CredentialStatus,
  type HolderService,
  VerifierAuthState,
} from '#protos/gen/chancery/credential/v1/holder_pb.js';
import type { StatusResult } from '../verifier/presentations/verdict.ts';
import { type JudgeIssuerDeps, judgeIssuer } from './judge-issuer.ts';
import { type ResolveRequestDeps, resolveRequest } from './resolve-request.ts';

export type HolderRpcDeps = JudgeIssuerDeps & ResolveRequestDeps;

/** Only the wallet service keeps credentials of people. */
export function mayJudgeForHolders(peer: RpcPeer): boolean {
  return peer.clientId === 'service-wallet';
}

const statuses = {
  NotPresent: CredentialStatus.NOT_PRESENT,
  Valid: CredentialStatus.VALID,
  Suspended: CredentialStatus.SUSPENDED,
  Revoked: CredentialStatus.REVOKED,
  Unavailable: CredentialStatus.UNSPECIFIED,
} as const satisfies Record<StatusResult, CredentialStatus>;

const authStates = {
  TrustedListVerified: VerifierAuthState.TRUSTED_LIST_VERIFIED,
  AuthenticUntrusted: VerifierAuthState.AUTHENTIC_UNTRUSTED,
  Unverifiable: VerifierAuthState.UNVERIFIABLE,
} as const;

/** Handlers of what the wallet service asks about issuers and verifiers. */
export function holderHandlers(deps: HolderRpcDeps): RpcHandlers<(typeof HolderService)['method']> {
  return {
    judgeIssuer: async ({ certificates, keyId, document, status }) => {
      const judged = await judgeIssuer(deps, {
        certificates,
        keyId,
        isDocument: document,
        status: status && { uri: status.uri, index: Number(status.index) },
      });
      return {
        publicKey: judged.publicKey,
        notBeforeMs: BigInt(judged.notBeforeMs),
        notAfterMs: BigInt(judged.notAfterMs),
        trusted: judged.isTrusted,
        reason: judged.reason,
        status: judged.status === undefined ? CredentialStatus.UNSPECIFIED : statuses[judged.status],
      };
    },
    resolveRequest: async ({ source, clientId }) => {
      const { auth, query, host, ...terms } = await resolveRequest(deps, {
        ...(source.case !== undefined && { [source.case]: source.value }),
        clientId: clientId === '' ? undefined : clientId,
      });
      return {
        clientId: terms.clientId,
        verifierHost: host,
        responseUri: terms.responseUri,
        responseMode: terms.responseMode,
        nonce: terms.nonce,
        ...(terms.state !== undefined && { state: terms.state }),
        dcqlQuery: JSON.stringify(query),
        authState: authStates[auth.state],
        anchorSetId: auth.state === 'TrustedListVerified' ? auth.anchorSetId : '',
        reason: auth.state === 'TrustedListVerified' ? '' : auth.reason,
      };
    },
  };
}
