import type { JsonObject } from '#core/encoding/json.ts';
import type { Caller } from '#core/identity/claims.ts';
import { CITIZEN_WALLET_AUDIENCE } from '#core/identity/tiers.ts';
import { TestIssuer } from './credential-issuer.ts';
import { openFixture, person, type Replica, type ReplicaOptions, startMs } from './fixture.ts';
import { createHttpClient, type HttpClient } from './http-client.ts';

/** A person with a token for citizen wallets. */
export function citizen(change: Partial<Caller> = {}): Caller {
  const { claims, ...rest } = person({ tier: 'consumer' });
  const aud = ['test:consumer', CITIZEN_WALLET_AUDIENCE];
  return { ...rest, claims: { ...claims, tier: 'consumer', aud }, ...change };
}

/** A replica with an issuer, and alice with a wallet of P-256. */
export interface HolderFixture {
  readonly replica: Replica & ReplicaOptions;
  readonly issuer: TestIssuer;
  readonly client: HttpClient;
  readonly walletAddress: string;
  /** Path of the credentials of the wallet. */
  readonly base: string;
  readonly holderJwk: JsonObject;
  /** Stores a credential as some caller, in the wallet of alice unless another path is given. */
  store(credential: string, who?: string, to?: string): ReturnType<HttpClient['call']>;
  /** A credential that alice has stored. */
  stored(change?: Parameters<TestIssuer['sdJwt']>[1]): Promise<{ readonly id: string }>;
  close(): Promise<void>;
}

export async function openHolderFixture(name: string): Promise<HolderFixture> {
  const issuer = new TestIssuer(startMs);
  const replica = await openFixture(name, { judge: issuer.judge });
  const client = createHttpClient(replica);
  client.callers.set('alice', citizen()).set('bob', citizen());
  const { walletAddress } = await client.made('alice', 'NISTP256');
  const { holderJwk } = (await client.call('alice', 'GET /api/v1/wallet/holder-keys')).body;
  const base = `/api/v1/wallets/${walletAddress}/credentials`;
  const store = (credential: string, who = 'alice', to = base) =>
    client.call(who, `POST ${to}`, { body: { credential } });
  return {
    replica,
    issuer,
    client,
    walletAddress,
    base,
    holderJwk,
    store,
    stored: async (change = {}) => (await store(issuer.sdJwt(holderJwk, change))).body,
    close: async () => {
      await client.close();
      await replica.close();
    },
  };
}
