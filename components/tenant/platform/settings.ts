import { PUBLIC_ORGANIZATION_ID, SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../audit/store.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import type { Organization } from '../organizations/organization.ts';
import { type Act, auditOf, changeStatus, type StatusDeps } from '../organizations/status.ts';
import { findOrganization, lockOrganization, updateOrganization } from '../organizations/store.ts';
import { getSettings, lockSettings, type PlatformSettings, updateSettings } from './store.ts';

/** The platform's settings with the Public organisation that they open or close. */
export interface PlatformState {
  readonly settings: PlatformSettings;
  readonly publicOrganization: Organization;
}

type Wish = Omit<Act, 'atMs'>;
type SettingsChange = Partial<Omit<PlatformSettings, 'updatedAtMs'>>;

export async function readPlatform(db: Reader<TenantDatabase>): Promise<PlatformState> {
  const publicOrganization = await findOrganization(db, PUBLIC_ORGANIZATION_ID);
  if (publicOrganization === undefined) throw refusal('ORGANIZATION_NOT_FOUND');
  return { settings: await getSettings(db), publicOrganization };
}

/**
 * Opens the Public organisation, and lets people register in it, or closes both; then all tokens of its members end. It is the
 * only way to do either: the route for the status of organisations refuses both.
 */
export async function setPublicOrganization(
  deps: StatusDeps,
  wish: Wish & { readonly enabled: boolean },
): Promise<PlatformState> {
  const { enabled, by, origin } = wish;
  const ended = await deps.db.transact(async (tx) => {
    const settings = await lockSettings(tx);
    const organization = await lockOrganization(tx, PUBLIC_ORGANIZATION_ID);
    // read after the locks, as where the status of any organisation is set
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

/** @param wish.maxOrgsPerUser 1 to 100; organisations that exist stay */
export async function setMaxOrganizations(
  deps: Omit<StatusDeps, 'notify'>,
  wish: Wish & { readonly maxOrgsPerUser: number },
): Promise<PlatformState> {
  const { maxOrgsPerUser, by, origin } = wish;
  await deps.db.transact(async (tx) => {
    const settings = await lockSettings(tx);
    await change(tx, settings, { maxOrgsPerUser }, { by, origin, atMs: deps.clock.nowMs() });
  });
  return readPlatform(deps.db.read);
}

/** What is set already is no change. */
async function change(
  tx: Transactor<TenantDatabase>,
  settings: PlatformSettings,
  wanted: SettingsChange,
  act: Act,
): Promise<void> {
  const next = { ...settings, ...wanted };
  const isSame =
    next.publicOrgEnabled === settings.publicOrgEnabled && next.maxOrgsPerUser === settings.maxOrgsPerUser;
  if (isSame) return;
  await updateSettings(tx, { ...next, updatedAtMs: act.atMs });
  await appendAudit(
    tx,
    auditOf(SYSTEM_ORGANIZATION_ID, 'PlatformSettingsUpdated', { ...act, details: wanted }),
  );
}
