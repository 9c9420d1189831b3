// The official Java client's responses over a WebSocket. Arguments: base address. The key is in KEY; see
// ../response-sockets.test.ts.
import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.http.ResponseConnection;
import com.openai.core.http.ResponseWebSocketException;
import com.openai.models.responses.Response;
import com.openai.models.responses.ResponsesClientEvent;

public class Sockets {
  public static void main(String[] args) throws Exception {
    OpenAIClient client = OpenAIOkHttpClient.builder().baseUrl(args[0]).apiKey(System.getenv("KEY")).build();
    try (ResponseConnection connection = client.responses().connect()) {
      create(connection, "hello [[text#java]]", null);
      Response first = connection.finalResponse();
      create(connection, "and?", first.id());
      Response second = connection.finalResponse();
      String text = first.output().get(0).asMessage().content().get(0).asOutputText().text();
      boolean continued = second.previousResponseId().filter(first.id()::equals).isPresent();
      create(connection, "x", "resp_missing");
      String refused = "";
      try {
        connection.finalResponse();
      } catch (ResponseWebSocketException error) {
        refused = error.event().asError().error().code().orElse("no code");
      }
      System.out.printf("{\"continued\":[\"%s\",%b],\"refused\":\"%s\"}%n", text, continued, refused);
    }
  }

  static void create(ResponseConnection connection, String input, String previousId) {
    var event = ResponsesClientEvent.ResponseCreate.builder().model("core-3").store(false).input(input);
    if (previousId != null) event.previousResponseId(previousId);
    connection.send(ResponsesClientEvent.ofResponseCreate(event.build()));
  }
}
