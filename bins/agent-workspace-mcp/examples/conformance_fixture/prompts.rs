//! The prompts that the suite asks for.

use rmcp::model::{
    ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt,
    PromptArgument, PromptMessage, ResourceContents, Role,
};

use crate::asking::{self, Question};
use crate::resources::PIXEL;

const ASKING: &str = "test_input_required_result_prompt";

pub(crate) fn list() -> Vec<Prompt> {
    let prompt = |name: &str, arguments: &[&str]| {
        let arguments: Vec<_> =
            arguments.iter().map(|name| PromptArgument::new(*name).with_required(true)).collect();
        let arguments = (!arguments.is_empty()).then_some(arguments);
        Prompt::new(name, Some("A prompt of the conformance suite"), arguments)
    };
    vec![
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt(ASKING, &[]),
    ]
}

pub(crate) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let given = |name: &str| {
        let arguments = request.arguments.as_ref();
        let value = arguments.and_then(|arguments| arguments.get(name)).and_then(|it| it.as_str());
        value.map(str::to_owned).ok_or_else(|| {
            ErrorData::invalid_params(format!("the prompt needs the argument '{name}'"), None)
        })
    };
    let says = |content| PromptMessage::new(Role::User, content);
    let text = |text: &str| says(ContentBlock::text(text));
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (one, two) = (given("arg1")?, given("arg2")?);
            vec![text(&format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let body = "Embedded resource content for testing.";
            let resource = ResourceContents::text(body, given("resourceUri")?);
            vec![
                says(ContentBlock::resource(resource)),
                text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => vec![
            says(ContentBlock::image(PIXEL, "image/png")),
            text("Please analyze the image above."),
        ],
        ASKING => {
            let question =
                Question::form("user_context", "What context should the prompt use?", "context");
            let Some(answer) = question.answer(request.input_responses.as_ref()) else {
                return Ok(asking::ask(vec![question], None)?.into());
            };
            vec![text(&format!("Use this context: {answer}"))]
        }
        other => {
            return Err(ErrorData::invalid_params(format!("unknown prompt '{other}'"), None));
        }
    };
    Ok(GetPromptResult::new(messages).into())
}
