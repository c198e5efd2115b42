import { findBase64Any } from '#core/encoding/base64.ts';
import { findCertificate, sha256, subjectOf } from './certificates.ts';
import type { Anchor, ListedService, Skipped } from './list.ts';

interface Selection {
  readonly anchors: readonly Anchor[];
  readonly extracted: number;
  readonly skipped: Skipped;
}

/**
 * The anchors of a list: certificates of authorities that have not expired, of issuing services that are granted. Equal
 * certificates make one anchor, with the type and status of the first service.
 */
export function selectAnchors(services: readonly ListedService[], nowMs: number): Selection {
  const issuing = services.filter(({ issues }) => issues);
  const granted = issuing.filter(({ isGranted }) => isGranted);
  const judged = granted.flatMap((service) =>
    service.certificates.map((text) => judge(text, service, nowMs)),
  );
  const taken = judged.filter((one) => typeof one !== 'string');
  const anchors = new Map<string, Anchor>();
  for (const anchor of taken) if (!anchors.has(anchor.thumbprint)) anchors.set(anchor.thumbprint, anchor);
  const count = (reason: string) => judged.filter((one) => one === reason).length;
  return {
    anchors: [...anchors.values()],
    extracted: taken.length,
    skipped: {
      type: services.length - issuing.length,
      status: issuing.length - granted.length,
      expired: count('expired'),
      notCa: count('notCa'),
      unparsable: count('unparsable'),
    },
  };
}

function judge(
  text: string,
  { type, status }: ListedService,
  nowMs: number,
): Anchor | 'expired' | 'notCa' | 'unparsable' {
  const der = findBase64Any(text.replaceAll(/[\t\n\r ]/g, ''));
  const certificate = der && findCertificate(der);
  if (certificate === undefined) return 'unparsable';
  if (!certificate.ca) return 'notCa';
  const notAfterMs = certificate.validToDate.getTime();
  if (notAfterMs < nowMs) return 'expired';
  return {
    der: new Uint8Array(certificate.raw),
    thumbprint: sha256(certificate.raw),
    subjectDn: subjectOf(certificate),
    serviceType: type,
    serviceStatus: status,
    notBeforeMs: certificate.validFromDate.getTime(),
    notAfterMs,
  };
}
