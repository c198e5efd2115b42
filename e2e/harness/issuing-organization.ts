import { z } from 'zod';
import type { Api } from './api.ts';
import { createOrganization, createPerson, type Person } from './governance.ts';
import { organizationKeys } from './organization-keys.ts';
import { mintWithSvid } from './service-token.ts';

const offered = z.object({
  offerId: z.string(),
  credentialOfferUri: z.string(),
  credentialOfferReferenceUri: z.string(),
  txCode: z.string().optional(),
});

/** An organisation with a certificate of its own authority, and what it offers. */
export interface IssuingOrganization {
  readonly organizationId: string;
  readonly subdomain: string;
  readonly certificate: z.output<typeof enrolled>;
  readonly administrator: Person;
  readonly walletAddress: string;
  /** Token of a service that may offer. */
  readonly service: string;
  /** Offers a site permit; members replace those of the offer. */
  offer(change?: Readonly<Record<string, unknown>>): Promise<z.output<typeof offered>>;
  /** State of an offer. */
  stateOf(offerId: string): Promise<z.output<typeof stateSchema>>;
  /** Ids of the credentials that an offer became. */
  credentialIds(offerId: string): Promise<readonly string[]>;
  /** Changes the status of a credential. */
  change(
    credentialId: string,
    verb: 'suspend' | 'reinstate' | 'revoke',
  ): Promise<z.output<typeof changedSchema>>;
}

interface Here {
  readonly api: Api;
  /** The token of a system administrator. */
  token(): string;
  /** Of local mode, whose sockets give the blueprint service its certificate. */
  readonly state?: Parameters<typeof mintWithSvid>[0];
  /** The token of a service that may offer, where there is no local mode. */
  readonly service?: string;
}

const enrolled = z.object({ subjectDn: z.string(), notAfter: z.string() });
const changedSchema = z.object({
  listId: z.string(),
  index: z.int(),
  transactionId: z.string().nullable(),
});
const stateSchema = z.object({
  status: z.string(),
  reason: z.string().optional(),
  credentialIds: z.array(z.string()),
});

export async function createIssuingOrganization(here: Here): Promise<IssuingOrganization> {
  const { api } = here;
  const organization = await createOrganization(api, here.token(), 'city');
  const { id: organizationId } = organization;
  const administrator = await createPerson(api, here.token(), organization, {
    name: 'administrator',
    role: 'Administrator',
  });
  const { walletAddress } = await organizationKeys(api, administrator.token, organizationId).makeMaster();
  const service = await serviceToken(here);
  const stateOf = async (offerId: string) => {
    const { body } = await api.expect(200, 'GET', `/api/v1/offers/${offerId}`, { token: service });
    return stateSchema.parse(body);
  };
  const enrol = `/api/v1/trust/tenants/${organizationId}/orgs/${walletAddress}/enrol`;
  const { body } = await api.expect(200, 'POST', enrol, { token: administrator.token, json: {} });
  return {
    organizationId,
    subdomain: organization.subdomain,
    certificate: enrolled.parse(body),
    administrator,
    walletAddress,
    service,
    offer: async (change = {}) => {
      const json = {
        issuerWalletAddress: walletAddress,
        tenantId: organizationId,
        credentialType: 'Site permit',
        claims: { permitNumber: 'P-17', area: 620, validFor: 'Test town' },
        ...change,
      };
      const made = await api.expect(201, 'POST', '/api/v1/offers', { token: service, json });
      return offered.parse(made.body);
    },
    stateOf,
    credentialIds: async (offerId) => (await stateOf(offerId)).credentialIds,
    change: async (credentialId, verb) => {
      const call = { token: administrator.token, json: { reason: 'test' } };
      const answer = await api.expect(200, 'POST', `/api/v1/credentials/${credentialId}/${verb}`, call);
      return changedSchema.parse(answer.body);
    },
  };
}

async function serviceToken({ state, service }: Here): Promise<string> {
  if (service !== undefined) return service;
  if (state === undefined) throw new Error('neither a local mode nor a token of a service is given');
  return (await mintWithSvid(state, 'service-blueprint')).token;
}
