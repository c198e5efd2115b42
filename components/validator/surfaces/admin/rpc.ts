import { scanJson, toValue } from '#core/encoding/json.ts';
import { decide } from '#core/identity/policies.ts';
import type { RpcContext, RpcHandlers } from '#kit/rpc/rpc.ts';
import type { ValidatorAdminService } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import type { ModeOutcome } from '../../chain/sealing/modes.ts';
import { isModeCommand, type ModeCommand } from '../../chain/sealing/modes.ts';
import { failure } from '../../errors.ts';
import type { ProvenEvidence } from '../../network/evidence/evidence.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { wireHeld } from '../evidence/wire.ts';
import { type PreviewRpcDeps, previewHandlers } from '../preview/rpc.ts';
import type { ValidatorReport } from '../reports/report.ts';
import { wireReport } from '../reports/wire.ts';

interface AdminRpcOptions extends PreviewRpcDeps {
  readonly configuration: Pick<Configuration, 'parse' | 'apply'>;
  /** The report of this validator. @param registerId empty for every register */
  report(registerId: string): ValidatorReport;
  changeModeHere(registerId: string, act: ModeCommand): Promise<ModeOutcome>;
  /** The evidence that this validator holds for a register. */
  evidence(registerId: string): readonly ProvenEvidence[];
}

/**
 * The register service stops the validation of deleted registers. Other validators must pass on the token of a system
 * administrator; otherwise one faulty member could stop all the others.
 */
function assertMayAct({ peer, subject }: RpcContext): void {
  if (peer.clientId === 'service-register' || decide('RequireSystemAdmin', subject) === 'allow') return;
  throw failure('FORBIDDEN');
}

/** The RPCs by which one validator collects the answers of all. */
export function adminHandlers(options: AdminRpcOptions): RpcHandlers<typeof ValidatorAdminService.method> {
  return {
    async getStatus({ registerId }) {
      return wireReport(options.report(registerId));
    },
    async listEvidence({ registerId }) {
      return wireHeld(options.evidence(registerId));
    },
    async act({ registerId, act }, context) {
      assertMayAct(context);
      if (!isModeCommand(act)) throw failure('INVALID_REQUEST', { message: `Unknown command ${act}` });
      return options.changeModeHere(registerId, act);
    },
    async configure({ patchJson }, { subject }) {
      if (decide('RequireSystemAdmin', subject) !== 'allow') throw failure('FORBIDDEN');
      options.configuration.apply(options.configuration.parse(toValue(scanJson(patchJson))));
      return {};
    },
    ...previewHandlers(options),
  };
}
