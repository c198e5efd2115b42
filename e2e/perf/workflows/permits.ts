import { createOrganization, createPerson, type Person } from '../../harness/governance.ts';
import { createRegister, waitOnline } from '../../harness/journey.ts';
import { application, sitePermit, workflows } from '../../harness/workflow.ts';
import type { RawStep } from '../raw/workflow/actions.ts';
import type { Role } from '../raw/workflow/site-permit.ts';
import type { Stage } from '../stage.ts';

/** A step of a site permit and the participant that takes it. */
export interface PermitStep extends Omit<RawStep, 'instanceId'> {
  readonly role: Role;
}

/** An application that the safety board looks at. */
export const applying: PermitStep = { role: 'applicant', actionId: 0, payload: application };

/** The way from the application to the permit. */
export const fourSteps: readonly PermitStep[] = [
  applying,
  { role: 'safety-board', actionId: 1, payload: { safetyScore: 80 } },
  {
    role: 'planning-office',
    actionId: 2,
    payload: { decision: 'approved', permitNumber: 'P000001', validFrom: '2027-01-01' },
  },
  { role: 'applicant', actionId: 3, payload: { collected: true } },
];

/** The board sends an application back. */
export const rejecting: PermitStep = {
  role: 'safety-board',
  actionId: 1,
  isRejection: true,
  payload: { reason: 'The floor area is not that of the plans.' },
};

/** A published site permit, with a person of an organisation of their own for each participant. */
export interface Permits {
  readonly registerId: string;
  readonly blueprintId: string;
  readonly parties: Readonly<Record<Role, Person>>;
  readonly definition: Readonly<Record<string, unknown>>;
}

/** Publishes the definition on a new register: of development, or an encrypted one. */
export async function openPermits(
  { api, token }: Stage,
  { devMode }: { readonly devMode: boolean },
): Promise<Permits> {
  const person = async (name: string, role: 'Administrator' | 'User'): Promise<Person> =>
    createPerson(api, token, await createOrganization(api, token, name), { name, role });
  const office = await person('bench-office', 'Administrator');
  const applicant = await person('bench-builder', 'User');
  const board = await person('bench-board', 'User');
  const registerId = await createRegister(
    api,
    office.token,
    { title: 'Bench permits', devMode },
    office.wallet,
  );
  await waitOnline(api, office.token, registerId);
  // Its own, so that what is asked about a blueprint does not depend on the rows before.
  const blueprintId = `site-permit-${registerId}`;
  const wallets = {
    'planning-office': office.wallet.walletAddress,
    'safety-board': board.wallet.walletAddress,
  };
  const definition = { ...sitePermit(wallets), id: blueprintId };
  await workflows(api).publish(office, definition, registerId);
  return {
    registerId,
    blueprintId,
    definition,
    parties: { applicant, 'planning-office': office, 'safety-board': board },
  };
}
