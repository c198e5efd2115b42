package trustlists;

import eu.europa.esig.dss.model.DSSDocument;
import eu.europa.esig.dss.model.FileDocument;
import eu.europa.esig.dss.model.SignatureValue;
import eu.europa.esig.dss.model.ToBeSigned;
import eu.europa.esig.dss.model.tsl.OtherTSLPointer;
import eu.europa.esig.dss.model.tsl.ParsingInfoRecord;
import eu.europa.esig.dss.model.tsl.TLInfo;
import eu.europa.esig.dss.model.tsl.TrustService;
import eu.europa.esig.dss.model.tsl.TrustServiceProvider;
import eu.europa.esig.dss.model.tsl.TrustServiceStatusAndInformationExtensions;
import eu.europa.esig.dss.model.tsl.ValidationInfoRecord;
import eu.europa.esig.dss.model.x509.CertificateToken;
import eu.europa.esig.dss.spi.DSSUtils;
import eu.europa.esig.dss.spi.validation.CommonCertificateVerifier;
import eu.europa.esig.dss.spi.x509.CommonCertificateSource;
import eu.europa.esig.dss.tsl.job.TLValidationJob;
import eu.europa.esig.dss.tsl.parsing.LOTLParsingTask;
import eu.europa.esig.dss.tsl.source.LOTLSource;
import eu.europa.esig.dss.tsl.source.TLSource;
import eu.europa.esig.dss.xades.XAdESSignatureParameters;
import eu.europa.esig.dss.xades.signature.XAdESService;
import eu.europa.esig.dss.xades.tsl.AbstractTrustedListSignatureParametersBuilder;
import eu.europa.esig.dss.xades.tsl.TrustedListV5SignatureParametersBuilder;
import eu.europa.esig.dss.xades.tsl.TrustedListV6SignatureParametersBuilder;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;

/**
 * EU DSS as a signer and a judge of trusted lists (ETSI TS 119 612). Tasks are lines of the standard input, fields are
 * separated by tabs; results are lines of JSON.
 *
 * <pre>
 * sign       VERSION LIST KEY CERTIFICATE OUTPUT   signs LIST as version 5 or 6; KEY is PKCS #8, CERTIFICATE X.509, both DER
 * judge      LIST CERTIFICATE TIME                 judges LIST under the signer CERTIFICATE; DSS needs no time for it
 * published  FOLDER                                writes the lists of DSS's tests with the signers that its list of lists names
 * </pre>
 */
public final class Main {
    private static final Set<String> ISSUING = Set.of(
        "http://uri.etsi.org/TrstSvc/Svctype/CA/QC", "http://uri.etsi.org/TrstSvc/Svctype/CA/PKC");
    private static final String GRANTED = "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/granted";
    /** Lists that DSS has in memory at the same time. */
    private static final int THREADS = 2;

    private Main() {
    }

    public static void main(String[] arguments) throws Exception {
        String command = arguments.length == 1 ? arguments[0] : "";
        List<String[]> tasks = new String(System.in.readAllBytes(), StandardCharsets.UTF_8)
            .lines().map(line -> line.split("\t")).toList();
        switch (command) {
            case "sign" -> {
                for (String[] task : tasks) sign(task);
            }
            case "judge" -> judge(tasks);
            case "published" -> writePublished(Path.of(tasks.get(0)[0]));
            default -> throw new IllegalArgumentException("sign, judge or published");
        }
    }

    /** Signs as XAdES-BASELINE-B, enveloped; DSS refuses a list that its schema or its version does not allow. */
    private static void sign(String[] task) throws IOException, GeneralSecurityException {
        DSSDocument list = new FileDocument(task[1]);
        CertificateToken certificate = DSSUtils.loadCertificate(new File(task[3]));
        AbstractTrustedListSignatureParametersBuilder builder = task[0].equals("5")
            ? new TrustedListV5SignatureParametersBuilder(certificate, list)
            : new TrustedListV6SignatureParametersBuilder(certificate, list);
        builder.assertConfigurationIsValid();
        XAdESSignatureParameters parameters = builder.build();
        XAdESService service = new XAdESService(new CommonCertificateVerifier());
        ToBeSigned toBeSigned = service.getDataToSign(list, parameters);
        Signature signature = Signature.getInstance(parameters.getSignatureAlgorithm().getJCEId());
        signature.initSign(readKey(Path.of(task[2]), certificate));
        signature.update(toBeSigned.getBytes());
        SignatureValue value = new SignatureValue(parameters.getSignatureAlgorithm(), signature.sign());
        service.signDocument(list, parameters, value).save(task[4]);
    }

    private static PrivateKey readKey(Path file, CertificateToken certificate) throws IOException, GeneralSecurityException {
        return KeyFactory.getInstance(certificate.getPublicKey().getAlgorithm())
            .generatePrivate(new PKCS8EncodedKeySpec(Files.readAllBytes(file)));
    }

    /** Every list is one source of a job, as an installation of DSS would read it, with its own signer. */
    private static void judge(List<String[]> tasks) {
        TLSource[] sources = tasks.stream().map(Main::sourceOf).toArray(TLSource[]::new);
        TLValidationJob job = new TLValidationJob();
        job.setExecutorService(Executors.newFixedThreadPool(THREADS, Main::daemon));
        job.setOfflineDataLoader(FileDocument::new);
        job.setTrustedListSources(sources);
        quietly(job::offlineRefresh);
        Map<String, TLInfo> infos = job.getSummary().getOtherTLInfos().stream()
            .collect(Collectors.toMap(TLInfo::getUrl, info -> info));
        for (String[] task : tasks) {
            System.out.println(verdictOf(infos.get(task[0]), DSSUtils.loadCertificate(new File(task[1]))));
        }
    }

    /** Parsers of XML print each fault, which the verdicts have, too. */
    private static void quietly(Runnable work) {
        PrintStream errors = System.err;
        System.setErr(new PrintStream(OutputStream.nullOutputStream()));
        try {
            work.run();
        } finally {
            System.setErr(errors);
        }
    }

    /** A thread that does not keep the process alive when the judgement has failed. */
    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        return thread;
    }

    private static TLSource sourceOf(String[] task) {
        CommonCertificateSource signers = new CommonCertificateSource();
        signers.addCertificate(DSSUtils.loadCertificate(new File(task[1])));
        TLSource source = new TLSource();
        source.setUrl(task[0]);
        source.setCertificateSource(signers);
        return source;
    }

    /** A list is accepted when it was parsed and its signature, by the pinned signer, is TOTAL_PASSED. Expired ones are, too. */
    private static String verdictOf(TLInfo info, CertificateToken pinned) {
        ParsingInfoRecord parsed = info.getParsingCacheInfo();
        ValidationInfoRecord validated = info.getValidationCacheInfo();
        boolean isAccepted = parsed.isResultExist() && validated.isValid()
            && pinned.equals(validated.getSigningCertificate());
        return object(
            field("accepted", String.valueOf(isAccepted)),
            field("reason", text(reasonOf(info))),
            field("anchors", array(texts(isAccepted ? anchorsOf(parsed) : List.of()))));
    }

    private static String reasonOf(TLInfo info) {
        ValidationInfoRecord validated = info.getValidationCacheInfo();
        if (info.getDownloadCacheInfo().isError()) return info.getDownloadCacheInfo().getExceptionMessage();
        if (info.getParsingCacheInfo().isError()) return info.getParsingCacheInfo().getExceptionMessage();
        if (validated.isError()) return validated.getExceptionMessage();
        return validated.getIndication() + " " + validated.getSubIndication();
    }

    /** Certificates of issuing services that are granted at present, base64 of DER. */
    private static List<String> anchorsOf(ParsingInfoRecord parsed) {
        List<String> anchors = new ArrayList<>();
        for (TrustServiceProvider provider : parsed.getTrustServiceProviders()) {
            for (TrustService service : provider.getServices()) {
                TrustServiceStatusAndInformationExtensions present = service.getStatusAndInformationExtensions().getLatest();
                if (!ISSUING.contains(present.getType()) || !GRANTED.equals(present.getStatus())) continue;
                for (CertificateToken certificate : service.getCertificates()) {
                    anchors.add(Base64.getEncoder().encodeToString(certificate.getEncoded()));
                }
            }
        }
        return anchors;
    }

    private static void writePublished(Path folder) throws IOException {
        Path lists = copy("lotlCache/EU.xml", folder.resolve("EU.xml"));
        LOTLParsingTask task = new LOTLParsingTask(new FileDocument(lists.toFile()), new LOTLSource());
        for (OtherTSLPointer pointer : task.get().getTlPointers()) {
            String territory = pointer.getSchemeTerritory();
            if (Main.class.getResource("/lotlCache/" + territory + ".xml") == null) continue;
            Path list = copy("lotlCache/" + territory + ".xml", folder.resolve(territory + ".xml"));
            List<String> signers = new ArrayList<>();
            for (CertificateToken certificate : pointer.getSdiCertificates()) {
                Path signer = folder.resolve(sha256(certificate.getEncoded()) + ".der");
                Files.write(signer, certificate.getEncoded());
                signers.add(signer.toString());
            }
            System.out.println(object(
                field("territory", text(territory)),
                field("list", text(list.toString())),
                field("signers", array(texts(signers)))));
        }
    }

    private static Path copy(String resource, Path file) throws IOException {
        try (InputStream input = Main.class.getResourceAsStream("/" + resource)) {
            Files.copy(input, file, StandardCopyOption.REPLACE_EXISTING);
        }
        return file;
    }

    private static String sha256(byte[] bytes) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    private static String object(String... fields) {
        return "{" + String.join(",", fields) + "}";
    }

    private static String field(String name, String value) {
        return text(name) + ":" + value;
    }

    private static String array(Iterable<String> values) {
        return "[" + String.join(",", values) + "]";
    }

    private static List<String> texts(List<String> values) {
        return values.stream().map(Main::text).toList();
    }

    /** A string of JSON; what is no printable ASCII is escaped. */
    private static String text(String value) {
        StringBuilder escaped = new StringBuilder("\"");
        for (char each : String.valueOf(value).toCharArray()) {
            boolean isPlain = each >= ' ' && each <= '~' && each != '"' && each != '\\';
            escaped.append(isPlain ? String.valueOf(each) : String.format("\\u%04x", (int) each));
        }
        return escaped.append('"').toString();
    }
}
