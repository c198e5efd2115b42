import type { Caller } from '#core/identity/claims.ts';
import type { Subject } from '../definitions/publications/visibility.ts';
import { refusal } from '../errors.ts';
import type { Definitions, PinnedDefinition } from './definitions.ts';
import { hasOpenStart, type Instance, walletsOf } from './instance.ts';

/** Addresses that the owner of a token may sign with, the oldest active one first. Errors: unavailable, timeout. */
export type ListOwnWallets = (bearer: string) => Promise<readonly string[]>;

export interface ViewDeps {
  readonly definitions: Pick<Definitions, 'find'>;
  readonly listOwn: ListOwnWallets;
}

/** An instance as a caller may read it. */
export interface InstanceView {
  readonly instance: Instance;
  /** Undefined when the pin does not resolve here. */
  readonly pinned: PinnedDefinition | undefined;
  /** Wallets of the caller. */
  readonly wallets: readonly string[];
  /** Participants that the caller's wallets are. */
  readonly participants: readonly string[];
}

/** The owner of an instance here: a person, or a service. */
export function creatorOf(caller: Caller): string {
  return caller.platformUserId ?? caller.clientId;
}

/**
 * Finds the instance of an id that the caller may read: they control the wallet of a participant, or created it, or it is
 * untouched and its starting role is open. Of several with one id, the first that the caller takes part in.
 * @throws AppError not_found INSTANCE_NOT_FOUND, forbidden INSTANCE_ACCESS_DENIED
 */
export async function viewInstance(
  deps: ViewDeps,
  candidates: readonly Instance[],
  { caller, bearer }: Subject,
): Promise<InstanceView> {
  const [first] = candidates;
  if (first === undefined) throw refusal('INSTANCE_NOT_FOUND');
  const wallets = await deps.listOwn(bearer);
  let untouched: InstanceView | undefined;
  for (const instance of candidates) {
    const view = await viewOf(deps, instance, wallets);
    const isCreator = instance.start !== undefined && instance.start.createdBy === creatorOf(caller);
    if (view.participants.length > 0 || isCreator) return view;
    if (untouched === undefined && isOpenToAll(view)) untouched = view;
  }
  if (untouched !== undefined) return untouched;
  throw refusal('INSTANCE_ACCESS_DENIED');
}

/** What wallets see of an instance, whether or not they take part. */
export async function viewOf(
  { definitions }: Pick<ViewDeps, 'definitions'>,
  instance: Instance,
  wallets: readonly string[],
): Promise<InstanceView> {
  const pinned = await definitions.find(instance.registerId, instance.pin);
  const roles =
    pinned === undefined
      ? new Map(Object.entries(instance.routing?.roles ?? instance.start?.participantWallets ?? {}))
      : walletsOf(instance, pinned.workflow);
  const participants = [...roles].filter(([, wallet]) => wallets.includes(wallet)).map(([id]) => id);
  return { instance, pinned, wallets, participants };
}

/** Whether any wallet may take the first step of an instance. */
function isOpenToAll({ instance, pinned }: InstanceView): boolean {
  return instance.state === 'Pending' && pinned !== undefined && hasOpenStart(pinned.workflow);
}
