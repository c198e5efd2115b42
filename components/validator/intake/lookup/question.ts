import type { LookupAnswer, LookupQuery } from '../../chain/keys/lookup.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';

/** A question about a transaction: is it sealed, what is its predecessor, and does it repeat another one? */
export interface Question {
  readonly register: RegisterChain;
  readonly query: LookupQuery;
  /** Type of the predecessor where the register's keys need not tell it: in the pool, or in the same docket. */
  typeHere(): string | undefined;
}

/** The answer of the register's keys as of this moment; undefined when only the register service can tell. */
export function answerOfKeys({ register, query, typeHere }: Question): LookupAnswer | undefined {
  return register.keys.answer(register.state.height, query, typeHere());
}
