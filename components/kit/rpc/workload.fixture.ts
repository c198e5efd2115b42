import type { Authority, LeafRequest } from '../../svid-issuer/authority/authority.ts';
import { createAuthority } from '../../svid-issuer/authority/testing/create-authority.ts';
import { systemClock } from '../clock/clock.ts';
import type { Svid, Workload } from '../workload/workload.ts';

export interface FixedWorkload extends Workload {
  /** Issues a new certificate of the same name. */
  rotate(leaf?: Partial<LeafRequest>): Promise<void>;
}

/** Authorities and identities for tests of connections; members of `leaf` make an invalid certificate. */
export function memoryAuthority(trustDomain: string): Promise<Authority> {
  return createAuthority(trustDomain, systemClock());
}

async function svidOf(authority: Authority, clientId: string, leaf: Partial<LeafRequest>): Promise<Svid> {
  const id = `spiffe://${authority.trustDomain}/service/${clientId}`;
  const request = {
    uris: [id],
    commonName: clientId,
    notBeforeMs: Date.now() - 60_000,
    notAfterMs: Date.now() + 3_600_000,
    ...leaf,
  };
  const { keyPem, certificatePem } = await authority.issue(request);
  return {
    id,
    key: keyPem,
    cert: certificatePem,
    ca: authority.certificatePem,
    expiresAtMs: request.notAfterMs,
  };
}

/** An identity that changes only when a test rotates it. */
export async function fixedWorkload(
  authority: Authority,
  clientId: string,
  leaf: Partial<LeafRequest> = {},
): Promise<FixedWorkload> {
  let svid = await svidOf(authority, clientId, leaf);
  const callbacks = new Set<() => void>();
  return {
    id: svid.id,
    trustDomain: authority.trustDomain,
    current: () => svid,
    onRotate: (callback) => {
      callbacks.add(callback);
      return () => {
        callbacks.delete(callback);
      };
    },
    rotate: async (next = {}) => {
      svid = await svidOf(authority, clientId, next);
      for (const callback of callbacks) callback();
    },
    stop: () => callbacks.clear(),
  };
}
