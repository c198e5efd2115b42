import { faultTolerance, quorum } from '#core/ledger/consensus.ts';
import type { Infrastructure } from './infrastructure.ts';
import type { FleetEvent } from './supervise.ts';

/** Output of `npm start` for people: plain text without secrets. */
interface Started {
  readonly gatewayUrl: string;
  readonly mtlsTokenUrl: string;
  readonly adminEmail: string;
  readonly adminPasswordFile: string;
  readonly dataDir: string;
  readonly validators: number;
  readonly seconds: number;
  readonly embedded: Infrastructure['embedded'];
}

/** The number of validators, and the number of them that may fail. */
function describeSet(size: number): string {
  const tolerated = faultTolerance(size);
  return `${size}${tolerated === 0 ? '' : `; sealing continues without ${tolerated} of them`}`;
}

/** Message for people when one of several validators ended or runs again. */
export function describeChange(event: FleetEvent, dataDir: string): string {
  const { name, reason, running, planned } = event;
  const count = `${running} of ${planned} validators run, ${quorum(planned)} are needed to seal.`;
  if (reason === undefined) return `${name} runs again. ${count}\n`;
  return `${name} ended: ${reason}. ${count}\n  npm start -- --data ${dataDir} --again ${name}\n`;
}

export function describeStart(started: Started): string {
  const { gatewayUrl, adminEmail, adminPasswordFile } = started;
  const part = (embedded: boolean): string => (embedded ? 'embedded' : 'given');
  return `
Chancery is ready after ${started.seconds.toFixed(1)} s. Ctrl-C stops it.

  Gateway         ${gatewayUrl}
  API reference   ${gatewayUrl}/docs
  mTLS tokens     ${started.mtlsTokenUrl}
  Administrator   ${adminEmail}
  Password        in ${adminPasswordFile}
  Validators      ${describeSet(started.validators)}
  State           ${started.dataDir}
  Database ${part(started.embedded.database)}, bus ${part(started.embedded.bus)}, identity ${part(started.embedded.identity)}

Try:
  curl -s ${gatewayUrl}/api/health
  TOKEN=$(curl -s ${gatewayUrl}/api/service-auth/token -d grant_type=password -d username=${adminEmail} --data-urlencode password@${adminPasswordFile} | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')
  curl -s ${gatewayUrl}/api/wallets -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' -d '{"title":"Mine","keyType":"ED25519"}'

`;
}
