import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Answer, Api } from './api.ts';
import { createOrganization, createPerson, type Person } from './governance.ts';
import { until } from './wait.ts';

const operation = z.object({
  operationId: z.string(),
  status: z.string(),
  stepName: z.string(),
  percentComplete: z.number(),
  transactionHash: z.string().nullable(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
});
const instance = z.looseObject({
  instanceId: z.string(),
  state: z.string(),
  stateReason: z.string().nullable(),
  currentActionIds: z.array(z.number()),
  completedActionCount: z.number(),
  lastTransactionId: z.string().nullable(),
});
const disclosures = z.object({
  recipientResolved: z.boolean(),
  disclosures: z.array(z.object({ actionId: z.number(), data: z.record(z.string(), z.unknown()) })),
  disclosedFields: z.record(z.string(), z.unknown()),
});

export type Operation = z.output<typeof operation>;

/** People around a site permit: three of an organisation each, and one of another. */
export interface Parties {
  readonly applicant: Person;
  /** An Administrator of the planning office. */
  readonly officer: Person;
  /** Of the safety board. */
  readonly inspector: Person;
  readonly stranger: Person;
}

export async function createParties(api: Api, root: string): Promise<Parties> {
  const person = async (name: string, role: 'Administrator' | 'User') =>
    createPerson(api, root, await createOrganization(api, root, name), { name, role });
  return {
    officer: await person('planning-office', 'Administrator'),
    applicant: await person('builder', 'User'),
    inspector: await person('safety-board', 'User'),
    stranger: await person('newspaper', 'User'),
  };
}

/** An Administrator and a user of one organisation. */
export async function createOffice(api: Api, root: string): Promise<Pick<Parties, 'applicant' | 'officer'>> {
  const organization = await createOrganization(api, root, 'planning');
  const person = (name: string, role: 'Administrator' | 'User') =>
    createPerson(api, root, organization, { name, role });
  return {
    officer: await person('officer', 'Administrator'),
    applicant: await person('applicant', 'User'),
  };
}

/** The definition of a site permit, without the credentials, whose closed participants have these wallets. */
export function sitePermit(wallets: Readonly<Record<string, string>>): Record<string, unknown> {
  const path = new URL('../../components/core/blueprint/vectors/site-permit.json', import.meta.url);
  const site = JSON.parse(readFileSync(path, 'utf8'));
  for (const participant of site.participants) {
    const wallet = wallets[participant.id];
    if (wallet !== undefined) participant.walletAddress = wallet;
  }
  for (const action of site.actions) {
    delete action.credentialRequirements;
    delete action.credentialIssuanceConfig;
    for (const route of action.routes) delete route.outputMapping;
  }
  return site;
}

/** An application that the safety board has to look at. */
export const application = {
  siteReference: 'AB-1234',
  floorAreaM2: 620,
  estimatedCostMinor: 1_000_000,
  hazardous: false,
  contact: { email: 'a@example.org' },
} as const;

interface StepRequest {
  readonly instanceId: string;
  readonly registerId: string;
  readonly blueprintId: string;
  readonly actionId: number;
  readonly payload: object;
  readonly key?: string;
  /** Other members of the body. */
  readonly more?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What the parties of a workflow do through the gateway. */
export function workflows(api: Api) {
  const operationOf = async (person: Person, id: string): Promise<Operation> =>
    operation.parse((await api.expect(200, 'GET', `/api/operations/${id}`, { token: person.token })).body);

  async function take(person: Person, step: StepRequest): Promise<Answer> {
    const { instanceId, registerId, blueprintId, actionId, payload, key, more } = step;
    const path = `/api/instances/${instanceId}/actions/${actionId}/execute`;
    const json = {
      blueprintId,
      actionId: String(actionId),
      instanceId,
      senderWallet: person.wallet.walletAddress,
      registerAddress: registerId,
      previousTransactionHash: null,
      payloadData: payload,
      ...more,
    };
    const headers = { ...step.headers, ...(key !== undefined && { 'idempotency-key': key }) };
    return api.send('POST', path, { token: person.token, json, headers });
  }

  return {
    take,
    operationOf,
    /** Publishes a definition with an override. */
    async publish(
      designer: Person,
      definition: Record<string, unknown>,
      registerId: string,
    ): Promise<string> {
      const { token } = designer;
      await api.expect(201, 'POST', '/api/blueprints', { token, json: definition });
      const json = { registerId, override: { confirm: true, reason: 'A journey from outside' } };
      const path = `/api/blueprints/${String(definition['id'])}/publish`;
      const { body } = await api.expect(200, 'POST', path, { token, json });
      return z.object({ publicationTxId: z.string() }).parse(body).publicationTxId;
    },
    async start(person: Person, blueprintId: string, registerId: string): Promise<string> {
      const json = { blueprintId, registerId };
      const { body } = await api.expect(201, 'POST', '/api/instances/', { token: person.token, json });
      return instance.parse(body).instanceId;
    },
    /** Takes an action and waits until its operation is done; returns the distinct states that were seen. */
    async complete(person: Person, step: StepRequest): Promise<Operation> {
      const answer = await take(person, step);
      if (answer.status !== 202) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`);
      const { operationId } = z.object({ operationId: z.string() }).parse(answer.body);
      return until(`operation ${operationId} is over`, 30_000, async () => {
        const now = await operationOf(person, operationId);
        return now.status === 'Complete' || now.status === 'Failed' ? now : undefined;
      });
    },
    async read(person: Person, instanceId: string) {
      const { body } = await api.expect(200, 'GET', `/api/instances/${instanceId}`, { token: person.token });
      return instance.parse(body);
    },
    /** Waits until an instance is folded up to a transaction. */
    async reach(person: Person, instanceId: string, txId: string) {
      return until(`the instance has ${txId}`, 15_000, async () => {
        const now = await this.read(person, instanceId);
        return now.lastTransactionId === txId ? now : undefined;
      });
    },
    async disclosed(person: Person, instanceId: string) {
      const path = `/api/workflows/${instanceId}/disclosures`;
      return disclosures.parse((await api.expect(200, 'GET', path, { token: person.token })).body);
    },
  };
}
