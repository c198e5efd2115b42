import { VALIDATOR_FEATURES } from '#core/blueprint/pins.ts';
import type { LedgerRules } from '#core/ledger/governance/rules.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { Mode } from '../../chain/records/entries.ts';
import type { VolumeGap } from '../../chain/registers/volume-gaps.ts';
import type { Condition } from '../../chain/sealing/health.ts';
import type { ModeOutcome } from '../../chain/sealing/modes.ts';
import { type ModeCommand, nextMode } from '../../chain/sealing/modes.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { failure } from '../../errors.ts';
import type { ProvenEvidence } from '../../network/evidence/evidence.ts';
import { summarise } from './conditions.ts';
import { type LastContact, reportRegister, type ValidatorReport } from './report.ts';
import type { RegisterSet } from './sets.ts';

interface LocalValidatorOptions {
  readonly validatorId: string;
  readonly version: string;
  readonly startedAtMs: number;
  allRegisters(): Iterable<RegisterChain>;
  getRegister(registerId: string): RegisterChain | undefined;
  findRegister(registerId: string): Promise<RegisterChain | undefined>;
  /** The validator set as the register service stores it; undefined for an unknown register. */
  findSet(registerId: string): Promise<RegisterSet | undefined>;
  setMode(registerId: string, mode: Mode): Promise<void>;
  heard(): readonly LastContact[];
  conditions(): readonly Condition[];
  volumeGap(registerId: string): VolumeGap | undefined;
  evidence(registerId: string): readonly ProvenEvidence[];
  /** The rules of a register as the register service stores them. */
  findRules(registerId: string): Promise<LedgerRules | undefined>;
}

/** The operations of this validator on its own registers. */
export interface LocalValidator {
  getRegister(registerId: string): RegisterChain | undefined;
  report(registerId: string): ValidatorReport;
  changeModeHere(registerId: string, act: ModeCommand): Promise<ModeOutcome>;
  findSet(registerId: string): Promise<RegisterSet | undefined>;
  evidence(registerId: string): readonly ProvenEvidence[];
  findRules(registerId: string): Promise<LedgerRules | undefined>;
}

export function createLocalValidator(options: LocalValidatorOptions): LocalValidator {
  const registersOf = (registerId: string): Iterable<RegisterChain> => {
    if (registerId === '') return options.allRegisters();
    const register = options.getRegister(registerId);
    return register === undefined ? [] : [register];
  };
  return {
    getRegister: (registerId) => options.getRegister(registerId),
    report: (registerId) => ({
      validatorId: options.validatorId,
      version: options.version,
      features: [...VALIDATOR_FEATURES],
      startedAtMs: options.startedAtMs,
      registers: Array.from(registersOf(registerId), (register) =>
        reportRegister(register, options.volumeGap(register.id), summarise(options.evidence(register.id))),
      ),
      heard: options.heard(),
      conditions: options.conditions(),
    }),
    async changeModeHere(registerId, act) {
      const register = await options.findRegister(registerId);
      if (register === undefined) throw failure('REGISTER_NOT_FOUND');
      const before = register.status;
      const status = nextMode(before, act);
      await options.setMode(register.id, status);
      return { status, changed: before !== status };
    },
    evidence: (registerId) => options.evidence(registerId),
    async findRules(registerId) {
      return options.getRegister(registerId)?.state.ledger ?? (await options.findRules(registerId));
    },
    async findSet(text) {
      const registerId = findRegisterId(text);
      if (registerId === undefined) return undefined;
      const register = options.getRegister(registerId);
      if (register === undefined) return options.findSet(registerId);
      const members = register.state.members.map(({ validatorId }) => validatorId);
      return { members, quorum: register.facts.quorum };
    },
  };
}
