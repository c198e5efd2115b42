import java.io.File
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.put

/**
 * A wallet that does what it reads: one JSON object a line, each answered by one line.
 *
 * `{"do":"take","offer":URI}` is answered by `{"authorize":URL}`; the line that follows has `{"redirect":URL}`, where the browser was
 * sent, and is answered by `{"credentials":[...]}`. So is `{"do":"renew"}`, which gets one more copy of the credential that was taken
 * last. `{"do":"present","request":URI}` is answered by `{"redirect":URL or null}`. An error is `{"error":TEXT}`.
 *
 * Argument: a PEM file with the private key and the certificate that this wallet and its keys are attested with.
 */
fun main(arguments: Array<String>) = runBlocking {
    // Multipaz logs to the standard output, which has answers alone.
    val answers = System.out
    System.setOut(System.err)
    val wallet = Wallet.create(File(arguments.single()).readText())
    while (true) {
        val command = Json.parseToJsonElement(readlnOrNull() ?: break).jsonObject
        val answer = try {
            obey(wallet, command, say = answers::println)
        } catch (error: CancellationException) {
            throw error
        } catch (error: Exception) {
            error.printStackTrace()
            buildJsonObject { put("error", error.toString()) }
        }
        answers.println(answer)
    }
}

private suspend fun obey(wallet: Wallet, command: JsonObject, say: (JsonElement) -> Unit): JsonObject =
    when (val verb = command.text("do")) {
        "take" -> {
            val credentials = wallet.take(command.text("offer")) { url ->
                say(buildJsonObject { put("authorize", url) })
                Json.parseToJsonElement(readln()).jsonObject.text("redirect")
            }
            buildJsonObject { put("credentials", credentials) }
        }
        "renew" -> buildJsonObject { put("credentials", wallet.renew()) }
        "present" -> {
            val redirect = wallet.present(command.text("request"))
            buildJsonObject { put("redirect", redirect) }
        }
        else -> throw IllegalArgumentException("unknown command: $verb")
    }

private fun JsonObject.text(name: String): String =
    requireNotNull(this[name]) { "$name is missing" }.jsonPrimitive.content
