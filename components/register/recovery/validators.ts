import type { Reader } from '#kit/db/db.ts';
import type { ValidatorAddress, Validators } from '../clients.ts';
import type { RegisterSchema } from '../database/schema.ts';
import { allAnnounced, registersOfMember } from '../directory/store.ts';
import type { DocketSource, FindSources } from './source.ts';

/** The announced validators as sources, each for the registers whose set it belongs to. */
export function validatorSources(
  db: Reader<RegisterSchema>,
  validators: Pick<Validators, 'heights' | 'readDockets'>,
): FindSources {
  const sourceOf = (at: ValidatorAddress): DocketSource => ({
    name: at.validatorId,
    async heights() {
      const told = await validators.heights(at);
      if (told.size === 0) return told;
      const own = await registersOfMember(db, at.validatorId);
      return new Map(own.flatMap((id) => (told.has(id) ? [[id, told.get(id) ?? 0] as const] : [])));
    },
    dockets: (registerId, from, signal) => validators.readDockets(at, { registerId, from, signal }),
  });
  return async () => {
    const announced = await allAnnounced(db);
    return announced.filter(({ endpoint }) => endpoint !== '').map(sourceOf);
  };
}
