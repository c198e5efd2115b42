import type { Reader } from '#kit/db/db.ts';
import type { ValidatorAddress, Validators } from '../../clients/validators.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { allAnnounced, registersOfMember } from '../../registers/directory/store.ts';
import type { DocketSource, FindSources } from './source.ts';

/** The announced validators as sources, each for the registers whose set it belongs to. */
export function validatorSources(
  db: Reader<RegisterSchema>,
  validators: Pick<Validators, 'heights' | 'readDockets'>,
): FindSources {
  const sourceOf = (at: ValidatorAddress): DocketSource => ({
    name: at.validatorId,
    async heights() {
      const reported = await validators.heights(at);
      if (reported.size === 0) return reported;
      const own = await registersOfMember(db, at.validatorId);
      return new Map(own.flatMap((id) => (reported.has(id) ? [[id, reported.get(id) ?? 0] as const] : [])));
    },
    dockets: (registerId, from, signal) => validators.readDockets(at, { registerId, from, signal }),
  });
  return async () => {
    const announced = await allAnnounced(db);
    return announced.filter(({ endpoint }) => endpoint !== '').map(sourceOf);
  };
}
