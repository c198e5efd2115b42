import { PUBLIC_ORGANIZATION_ID, SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../audit/log/store.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { getOrganization } from '../organizations/authority.ts';
import type { Organization } from '../organizations/organization.ts';
import { type Act, auditOf, changeStatus, type StatusDeps } from '../organizations/status.ts';
import { lockOrganization, updateOrganization } from '../organizations/store.ts';
import { getSettings, lockSettings, type PlatformSettings, updateSettings } from './settings/store.ts';

/** The platform settings with the Public organisation that they enable or disable. */
export interface PlatformState {
  readonly settings: PlatformSettings;
  readonly publicOrganization: Organization;
}

type Actor = Omit<Act, 'atMs'>;
type SettingsChange = Partial<Omit<PlatformSettings, 'updatedAtMs'>>;

export async function readPlatform(db: Reader<TenantDatabase>): Promise<PlatformState> {
  const publicOrganization = await getOrganization(db, PUBLIC_ORGANIZATION_ID);
  return { settings: await getSettings(db), publicOrganization };
}

/**
 * Enables the Public organisation with self-registration, or disables both and ends all tokens of its members. It is
 * the only way to change this: the route for the status of organisations refuses it.
 */
export async function setPublicOrganization(
  deps: StatusDeps,
  input: Actor & { readonly enabled: boolean },
): Promise<PlatformState> {
  const { enabled, by, origin } = input;
  const ended = await deps.db.transact(async (tx) => {
    const settings = await lockSettings(tx);
    const organization = await lockOrganization(tx, PUBLIC_ORGANIZATION_ID);
    // read after the locks, as in every change of an organisation's status
    const act = { by, origin, atMs: deps.clock.nowMs() };
    if (organization === undefined) throw refusal('ORGANIZATION_NOT_FOUND');
    await change(tx, settings, { publicOrgEnabled: enabled }, act);
    if (organization.selfRegistrationEnabled !== enabled)
      await updateOrganization(tx, organization.id, { selfRegistrationEnabled: enabled });
    return changeStatus(tx, organization, { ...act, status: enabled ? 'Active' : 'Suspended' });
  });
  if (ended) deps.notify();
  return readPlatform(deps.db.read);
}

/** @param input.maxOrgsPerUser 1 to 100; existing organisations stay */
export async function setMaxOrganizations(
  deps: Omit<StatusDeps, 'notify'>,
  input: Actor & { readonly maxOrgsPerUser: number },
): Promise<PlatformState> {
  const { maxOrgsPerUser, by, origin } = input;
  await deps.db.transact(async (tx) => {
    const settings = await lockSettings(tx);
    await change(tx, settings, { maxOrgsPerUser }, { by, origin, atMs: deps.clock.nowMs() });
  });
  return readPlatform(deps.db.read);
}

/** Unchanged values are skipped. */
async function change(
  tx: Transactor<TenantDatabase>,
  settings: PlatformSettings,
  changes: SettingsChange,
  act: Act,
): Promise<void> {
  const next = { ...settings, ...changes };
  const isSame =
    next.publicOrgEnabled === settings.publicOrgEnabled && next.maxOrgsPerUser === settings.maxOrgsPerUser;
  if (isSame) return;
  await updateSettings(tx, { ...next, updatedAtMs: act.atMs });
  await appendAudit(
    tx,
    auditOf(SYSTEM_ORGANIZATION_ID, 'PlatformSettingsUpdated', { ...act, details: changes }),
  );
}
