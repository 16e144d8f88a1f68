from werkzeug.debug import DebuggedApplication


def test_pin_security_can_be_switched_off():
    app = DebuggedApplication(lambda environ, start_response: [], evalex=True, pin_security=False)
    assert app.pin is None
