import { systemClock } from '#kit/clock/clock.ts';
import type { TlsMaterial, TlsSource } from '#kit/http/tls.ts';
import {
  type Authority,
  type AuthorityPem,
  type LeafRequest,
  loadAuthority,
} from '../../svid-issuer/authority/authority.ts';
import { createAuthority } from '../../svid-issuer/authority/testing/create-authority.ts';
import { testInstallation } from './runtime.ts';

/** A certificate source whose certificates a test replaces. */
export interface TestIdentity extends TlsSource {
  current(): TlsMaterial;
  /** Takes new material and notifies subscribers. */
  rotate(material: TlsMaterial): void;
}

/** A certificate authority for one test, in memory. */
export interface TestAuthority {
  readonly caPem: string;
  /** Valid material of `spiffe://<test installation>/service/<clientId>`; members of `leaf` make it invalid. */
  issue(clientId: string, leaf?: Partial<LeafRequest>): Promise<TlsMaterial>;
  /** The same as a source that can rotate. */
  identity(clientId: string, leaf?: Partial<LeafRequest>): Promise<TestIdentity>;
}

const hourMs = 3_600_000;

/** Makes an authority for the test installation. */
export async function testAuthority(trustDomain: string = testInstallation): Promise<TestAuthority> {
  return issuing(await createAuthority(trustDomain, systemClock()));
}

/** The root of an installation, as its issuer keeps it. */
export async function installationAuthority(root: AuthorityPem, trustDomain: string): Promise<TestAuthority> {
  return issuing(await loadAuthority(root, trustDomain));
}

function issuing(authority: Authority): TestAuthority {
  const issue = (clientId: string, leaf: Partial<LeafRequest> = {}) => issueLeaf(authority, clientId, leaf);
  return {
    caPem: authority.certificatePem,
    issue,
    identity: async (clientId, leaf) => rotating(await issue(clientId, leaf)),
  };
}

async function issueLeaf(
  authority: Authority,
  clientId: string,
  leaf: Partial<LeafRequest>,
): Promise<TlsMaterial> {
  const issued = await authority.issue({
    uris: [`spiffe://${authority.trustDomain}/service/${clientId}`],
    commonName: clientId,
    notBeforeMs: Date.now() - 60_000,
    notAfterMs: Date.now() + hourMs,
    ...leaf,
  });
  return { key: issued.keyPem, cert: issued.certificatePem, ca: authority.certificatePem };
}

function rotating(first: TlsMaterial): TestIdentity {
  let material = first;
  const listeners = new Set<() => void>();
  return {
    current: () => material,
    onRotate: (callback) => {
      listeners.add(callback);
      return () => listeners.delete(callback);
    },
    rotate: (next) => {
      material = next;
      for (const callback of listeners) {
        callback();
      }
    },
  };
}
